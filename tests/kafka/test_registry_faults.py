"""Registries that are away, ill or hold bad schemas, over the whole way of a record: what waits, and what is set aside.

One topic and one root, three rounds, each with a memory of its own: first all is well but the schemas; then no registry
answers as it should; then all do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from demux.registry.choice import open_registry
from demux.registry.protocol import ErasableRegistry, Reference
from install_workflow.run import Round
from tests.fakes.registry_server import FakeRegistry, Fault, Passing, Way, proto, serving
from tests.flow.root import Root, Rows, wrapper
from tests.kafka.pipeline import classes, deliver, ends, kafka_root, replayed, sentences
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
    Reference("faults/base.proto", f"{HEAD}message Base {{ int32 number = 1; }}\n"),
    Reference("faults/mid.proto", f'{HEAD}import "faults/base.proto";\nmessage Mid {{ Base base = 1; }}\n'),
)
WIDE = "\n".join((f"{HEAD}message Wide {{", *(f"int64 field_{at} = {at};" for at in range(1, WIDTH + 1)), "}"))
# string 1 = "ann", which every message here but two can hold
ANN = b"\x0a\x03ann"

ILL: Mapping[str, Fault] = {
    "busy": Fault(429, '{"message": "slow down"}', {"Retry-After": "1"}),
    "patient": Fault(429, "", {"Retry-After": "3600"}),
    "sick": Fault(500, '{"error_code": 50001, "message": "Error in the backend data store"}'),
    "page": Fault(200, "<html><body>Log in, please</body></html>", {"Content-Type": "text/html"}),
    "half": Fault(200, '{"schema": "syntax", "schemaType": "PROTOBUF"}', way=Way.TRUNCATED),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a root holds after a step."""

    silver: Mapping[str, Rows]
    quarantine: Rows
    columns: Mapping[str, list[str]]

    def names(self, game: str) -> list[tuple[int, str]]:
        """Offset and name of the game's rows."""
        return sorted((row["_offset"], row["name"]) for row in self.silver[game])

    def causes(self, game: str) -> dict[int, str]:
        """Cause by offset of the game's rows in quarantine."""
        return {row["offset"]: row["cause"] for row in self.quarantine if row["game_name"] == game}

    def sentence(self, game: str) -> str:
        """The sentence of the game's only row in quarantine."""
        (row,) = (row for row in self.quarantine if row["game_name"] == game)
        return str(row["sentence"])


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened."""

    ids: Mapping[str, int]
    urls: tuple[str, str]
    rounds: tuple[Round, Round, Round]
    replayed: Mapping[str, tuple[int, int]]
    told: tuple[Told, Told, Told]
    bronze: Rows


GAMES = ("one", "two", "nested", "wide", "late", "lost", "avro", "broken", "twin", "warm", "cold", *ILL)


def told(root: Root) -> Told:
    there = {game: root.silver(game) for game in GAMES}
    columns = {game: root.silver_columns(game) for game, rows in there.items() if rows}
    return Told(there, root.quarantine(), columns)


def register(mine: ErasableRegistry, url: str) -> dict[str, int]:
    """Return the ids of what the real registry has, by game; the next one it will give is that of `late`."""
    ids = {game: mine.register(f"faults-{game}", text, "event.proto", ()) for game, text in SAME.items()}
    ids["nested"] = mine.register("faults-nested", TOP, "top.proto", NESTED)
    ids["wide"] = mine.register("faults-wide", WIDE, "wide.proto", ())
    with SchemaRegistryClient({"url": url}) as other:
        ids["lost"] = other.register_schema("faults-lost", Schema(LOST, "PROTOBUF"))
        ids["avro"] = other.register_schema("faults-avro", Schema('{"type": "string"}', "AVRO"))
    for game in ILL:
        ids[game] = mine.register(f"faults-{game}", f"{EVENT}// {game}\n", "event.proto", ())
    return {**ids, "late": max(ids.values()) + 1}


@pytest.fixture(scope="module")
def story(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    default, (port,) = Passing(registry.url), free_ports(1)
    with serving(default):
        root = kafka_root(
            spark,
            tmp_path_factory.mktemp("faults") / "root",
            broker.bootstrap,
            "registry-faults",
            registry={"url": default.url, "retries": 1, "timeout_s": 2},
            registries={
                "second": {
                    "url": f"http://127.0.0.1:{port}",
                    "games": ["twin", "warm", "cold", "broken"],
                    "retries": 1,
                    "timeout_s": 2,
                }
            },
        )
        mine = open_registry(root.settings, environ={})
        ids = register(mine, registry.url)
        second = FakeRegistry(first_id=ids["one"])
        for game, text in {"twin": TWIN, "warm": EVENT, "cold": f"{EVENT}// cold\n", "broken": BROKEN}.items():
            ids[game] = second.put(game, proto(text))
        yield tell(root, default, second, port, mine, ids)


def tell(
    root: Root, default: Passing, second: FakeRegistry, port: int, mine: ErasableRegistry, ids: Mapping[str, int]
) -> Story:
    wide = classes(WIDE)("faults.Wide")(**{f"field_{at}": -at for at in range(1, WIDTH + 1)})
    nested = classes(TOP, *NESTED)("faults.Top")(name="ann", mid={"base": {"number": 7}})
    payloads = {"wide": wide.SerializeToString(), "nested": nested.SerializeToString(), "twin": b"\x08\x07"}

    def send(*games: str) -> None:
        deliver(root, [wrapper(game, ids[game], payloads.get(game, ANN)) for game in games])

    first_games = ("one", "two", "nested", "wide", "late", "lost", "avro", "broken", "twin", "warm")
    with serving(second, port=port):
        send(*first_games)
        # whoever asks first is told to come again
        default.faults.append(Fault(429, "", {"Retry-After": "1"}))
        first = root.run()
        assert mine.register("faults-late", LATE, "late.proto", ()) == ids["late"]
        after_first = told(root)
    again = replayed(root) if False else {}
    send("warm", "cold", *ILL, "late")
    default.broken |= {f"/schemas/ids/{ids[game]}": fault for game, fault in ILL.items()}
    ill = root.run()
    after_second, bronze = told(root), root.bronze()
    default.broken.clear()
    with serving(second, port=port):
        well = root.run()
        again = replayed(root)
    return Story(
        ids, (default.url, second.url), (first, ill, well), again, (after_first, after_second, told(root)), bronze
    )


def test_all(story: Story) -> None:
    for r in story.rounds:
        print(ends(r))
        for e in r.ended:
            print(e.task.game, round(e.seconds, 1), e.report and (e.report.rows_silver, e.report.rows_quarantined))
        print(sentences(r))
    print(story.replayed)
    for t in story.told:
        for g, rows in t.silver.items():
            print(g, [{k: v for k, v in list(row.items())[:3]} for row in rows])
        for q in t.quarantine:
            print(q["game_name"], q["cause"], q["offset"], q["sentence"])
    assert False


def unused() -> Any: ...
