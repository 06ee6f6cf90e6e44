"""Registries that are away, ill or hold bad schemas, over the whole way of a record: what waits, and what is set aside.

One topic and one root, three rounds, each with a memory of its own: first all is well but the schemas; then no registry
answers as it should; then all do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from demux.core.errors import ErrorKind
from demux.core.registry.protocol import ErasableRegistry, ImportedFile
from demux.core.schemas.registry_selection import open_registry
from demux.pipeline.round import Round
from tests.fakes.registry_server import FakeRegistry, Fault, Passing, Way, proto, serving
from tests.support.flow.root import Root, Rows, wrapper
from tests.support.kafka.pipeline import classes, deliver, ends, kafka_root, replayed, sentences
from tools.servers.broker import Broker
from tools.servers.ports import free_ports
from tools.servers.registry import Registry

WIDTH = 5000
HEAD = 'syntax = "proto3";\npackage faults;\n'
EVENT = f"{HEAD}message Event {{ string name = 1; }}\n"
SAME = {game: f"{HEAD}message Event {{ string {game} = 1; }}\n" for game in ("one", "two")}
TWIN = f"{HEAD}message Twin {{ int64 score = 1; }}\n"
LATE = f"{HEAD}message Late {{ string name = 1; bool late = 2; }}\n"
LOST = f'{HEAD}import "faults/lost.proto";\nmessage Lost {{ string name = 1; Base base = 2; }}\n'
BROKEN = f"{HEAD}messag Broken {{ string name = 1; }}\n"
TOP = f'{HEAD}import "faults/mid.proto";\nmessage Top {{ string name = 1; Mid mid = 2; }}\n'
NESTED = (
    ImportedFile("faults/base.proto", f"{HEAD}message Base {{ int32 number = 1; }}\n"),
    ImportedFile("faults/mid.proto", f'{HEAD}import "faults/base.proto";\nmessage Mid {{ Base base = 1; }}\n'),
)
WIDE = "\n".join((f"{HEAD}message Wide {{", *(f"int64 field_{at} = {at};" for at in range(1, WIDTH + 1)), "}"))
AVRO = '{"type": "fixed", "name": "Faults", "size": 1}'
# the first field of most messages here
ANN = b"\x0a\x03ann"

ILL: Mapping[str, Fault] = {
    "busy": Fault(429, '{"message": "slow down"}', {"Retry-After": "1"}),
    "sick": Fault(500, '{"error_code": 50001, "message": "Error in the backend data store"}'),
    "page": Fault(200, "<html><body>Log in, please</body></html>", {"Content-Type": "text/html"}),
    "half": Fault(200, '{"schema": "syntax", "schemaType": "PROTOBUF"}', way=Way.TRUNCATED),
}
WELL = ("one", "two", "nested", "wide", "late", "lost", "avro", "broken", "twin", "warm")
# those of the second registry, which is down in the second round
SECOND: Mapping[str, str] = {"twin": TWIN, "warm": EVENT, "cold": f"{EVENT}// cold\n", "broken": BROKEN}


@dataclass(frozen=True, slots=True)
class RootContents:
    """What a root holds after a round."""

    silver: Mapping[str, Rows]
    quarantine: Rows
    waiting: set[str]

    def names(self, game: str) -> list[str]:
        """The column `name` of the game's rows."""
        return [row["name"] for row in self.silver[game]]

    def refusal(self, game: str) -> tuple[str, str]:
        """Cause and sentence of the game's only row in quarantine."""
        (row,) = (row for row in self.quarantine if row["game_name"] == game)
        return row["cause"], row["sentence"]


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened, round by round: well, ill, and well again with a replay behind it."""

    ids: Mapping[str, int]
    urls: tuple[str, str]
    rounds: tuple[Round, Round, Round]
    contents: tuple[RootContents, RootContents, RootContents]
    replayed: Mapping[str, tuple[int, int]]
    columns: Sequence[str]


def contents(root: Root) -> RootContents:
    silver = {game: root.silver(game) for game in (*WELL, "cold", *ILL)}
    quarantine = root.quarantine()
    arrived = Counter(row["game_name"] for row in quarantine) + Counter({game: len(silver[game]) for game in silver})
    waiting = Counter(row["game_name"] for row in root.bronze()) - arrived
    return RootContents(silver, quarantine, set(waiting))


def register(mine: ErasableRegistry, url: str) -> dict[str, int]:
    """Return the ids of what the real registry has, by game, and the next one that it will give, for `late`.

    It skips an id where a content is already there: none of these may be.
    """
    ids = {game: mine.register(f"faults-{game}", text, "event.proto", ()) for game, text in SAME.items()}
    ids["nested"] = mine.register("faults-nested", TOP, "top.proto", NESTED)
    ids["wide"] = mine.register("faults-wide", WIDE, "wide.proto", ())
    for game in ILL:
        ids[game] = mine.register(f"faults-{game}", f"{EVENT}// {game}\n", "event.proto", ())
    with SchemaRegistryClient({"url": url}) as other:
        ids["lost"] = other.register_schema("faults-lost", Schema(LOST, "PROTOBUF"))
        ids["avro"] = other.register_schema("faults-avro", Schema(AVRO, "AVRO"))
    return {**ids, "late": max(ids.values()) + 1}


@pytest.fixture(scope="module")
def story(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    default, (port,) = Passing(registry.url), free_ports(1)
    second = {"url": f"http://127.0.0.1:{port}", "games": list(SECOND), "retries": 1}
    with serving(default):
        root = kafka_root(
            spark,
            tmp_path_factory.mktemp("faults") / "root",
            broker.bootstrap,
            "registry-faults",
            registry={"url": default.url, "retries": 1},
            registries={"second": second},
            # other tests have subjects that are called as these games are
            games={"subjects_of": {game: [f"faults-{game}"] for game in WELL}},
        )
        yield tell(root, default, registry.url, port)


def tell(root: Root, default: Passing, url: str, port: int) -> Story:
    mine = open_registry(root.settings, environ={})
    ids = register(mine, url)
    second = FakeRegistry(first_id=ids["one"])
    ids |= {game: second.put(game, proto(text)) for game, text in SECOND.items()}
    wide = classes(WIDE)("faults.Wide")(**{f"field_{at}": -at for at in range(1, WIDTH + 1)})
    nested = classes(TOP, *NESTED)("faults.Top")(name="ann", mid={"base": {"number": 7}})
    payloads = {"wide": wide.SerializeToString(), "nested": nested.SerializeToString(), "twin": b"\x08\x07"}

    def send(*games: str) -> None:
        deliver(root, [wrapper(game, ids[game], payloads.get(game, ANN)) for game in games])

    with serving(second, port=port):
        # no wrapper: quarantine is there before two games need it at the same time
        deliver(root, [b""])
        send(*WELL)
        # whoever asks first is told to come again
        default.faults.append(Fault(429, "", {"Retry-After": "1"}))
        first = root.run(), contents(root)
        assert not default.faults
    send("warm", "cold", *ILL)
    default.broken |= {f"/schemas/ids/{ids[game]}": fault for game, fault in ILL.items()}
    ill = root.run(), contents(root)
    default.broken.clear()
    assert mine.register("faults-late", LATE, "late.proto", ()) == ids["late"]
    with serving(second, port=port):
        well = root.run()
        again = replayed(root)
    urls = (default.url, second.url)
    rounds = (first[0], ill[0], well)
    return Story(ids, urls, rounds, (first[1], ill[1], contents(root)), again, root.silver_columns("wide"))


def test_a_schema_that_cannot_be_used_sets_its_rows_aside_and_the_cause_says_why(story: Story) -> None:
    assert ends(story.rounds[0]) == dict.fromkeys(WELL, "done")
    first, (url, _), ids = story.contents[0], story.urls, story.ids
    assert first.refusal("late") == ("UNKNOWN_SCHEMA", f"The registry at {url} has no schema {ids['late']}.")
    assert first.refusal("lost") == (
        "INVALID_SCHEMA",
        f"Schema {ids['lost']} ('faults-lost' version 1) does not compile: "
        'schema.proto:3:1: Import "faults/lost.proto" was not found or had errors.',
    )
    assert first.refusal("avro") == (
        "INVALID_SCHEMA",
        f"Schema {ids['avro']} ('faults-avro' version 1) of the registry at {url} is of type AVRO, not PROTOBUF.",
    )
    assert first.refusal("broken") == (
        "INVALID_SCHEMA",
        f"Schema {ids['broken']} ('broken' version 1) does not compile: "
        'schema.proto:3:1: Expected top-level statement (e.g. "message").',
    )
    assert {game for game, rows in first.silver.items() if not rows} == {
        "late", "lost", "avro", "broken", "cold", *ILL,
    }  # fmt: skip


def test_a_schema_that_is_registered_late_decodes_by_a_replay(story: Story) -> None:
    assert story.contents[1].names("late") == []
    assert story.replayed == {"late": (1, 0), "lost": (0, 1), "avro": (0, 1), "broken": (0, 1)}
    assert [(row["name"], row["late"]) for row in story.contents[2].silver["late"]] == [("ann", False)]
    assert {row["game_name"] for row in story.contents[2].quarantine} == {None, "lost", "avro", "broken"}


def test_two_subjects_may_have_messages_of_the_same_name(story: Story) -> None:
    rows = {game: story.contents[0].silver[game] for game in SAME}
    assert {game: (row[game], row["_schema_id"]) for game, (row,) in rows.items()} == {
        game: ("ann", story.ids[game]) for game in SAME
    }


def test_references_of_references_decode(story: Story) -> None:
    (row,) = story.contents[0].silver["nested"]
    assert (row["name"], row["mid"]) == ("ann", {"base": {"number": 7}})


def test_a_message_of_5000_fields_becomes_5000_columns(story: Story) -> None:
    (row,) = story.contents[0].silver["wide"]
    assert list(story.columns[:WIDTH]) == [f"field_{at}" for at in range(1, WIDTH + 1)]
    assert [row[name] for name in story.columns[:WIDTH]] == [-at for at in range(1, WIDTH + 1)]


def test_an_id_means_another_schema_in_another_registry(story: Story) -> None:
    assert story.ids["twin"] == story.ids["one"]
    (twin,), (one,) = story.contents[0].silver["twin"], story.contents[0].silver["one"]
    assert (twin["score"], twin["_schema_id"], one["one"]) == (7, one["_schema_id"], "ann")


def test_what_is_known_is_decoded_while_no_registry_answers_and_the_rest_waits_in_bronze(story: Story) -> None:
    assert ends(story.rounds[1]) == {"warm": "done", **dict.fromkeys(["cold", *ILL], "REGISTRY_UNAVAILABLE")}
    assert {end.error.kind for end in story.rounds[1].ended if end.error} == {ErrorKind.TRANSIENT}
    url, second = (f"The registry at {url} gave no usable answer:" for url in story.urls)
    said = sentences(story.rounds[1])
    assert said == {
        "half": f"{url} it broke off its answer.",
        "cold": f"{second} it was not reached: [Errno 111] Connection refused.",
        "busy": f"{url} it answered 429 (slow down), and asks to wait 1 s.",
        "sick": f"{url} it answered 500 (Error in the backend data store).",
        "page": f"{url} it answered with a page for people.",
    }
    while_ill = story.contents[1]
    assert while_ill.names("warm") == ["ann", "ann"]
    assert while_ill.waiting == {"cold", *ILL}
    assert while_ill.quarantine == story.contents[0].quarantine


def test_what_waited_is_decoded_once_when_the_registries_answer_again(story: Story) -> None:
    assert ends(story.rounds[2]) == dict.fromkeys(["cold", *ILL], "done")
    last = story.contents[2]
    assert {game: last.names(game) for game in ("cold", *ILL)} == {game: ["ann"] for game in ("cold", *ILL)}
    assert (last.waiting, last.names("warm")) == (set(), ["ann", "ann"])
