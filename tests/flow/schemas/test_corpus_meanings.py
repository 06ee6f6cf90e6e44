"""What a record of the corpus means where its schema id alone does not say it: shared ids, and ids of other games."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from demux.core.schemas.registry_selection import open_registry
from tests.corpus.installed import TYPES
from tests.corpus.texts import text_of
from tests.corpus.versions import Version
from tests.fakes.registry_server import FakeRegistry, serving
from tests.support.flow.corpus import Sent, Way, mistakes, mixed, records_of, refused, registered, run_of, sent_to, ways
from tests.support.flow.process import Command

# messages of two files, one that is a file's import too, and one alone
SHARED = (
    "SC2APIProtocol.Action",
    "SC2APIProtocol.RequestCreateGame",
    "onnx.TensorProto",
    "onnx.ModelProto",
    "google.rpc.Status",
    "google.longrunning.Operation",
)
STRAYS = ("SC2APIProtocol.Action", "google.logging.type.HttpRequest", "onnx.TensorProto")
VALUES = {"subjects": "(?P<game>.+)-value"}

Shared = Callable[[Way, SparkSession, Path], AbstractContextManager[tuple[Sent, dict[Version, int]]]]


@contextmanager
def by_confluent(way: Way, spark: SparkSession, folder: Path) -> Iterator[tuple[Sent, dict[Version, int]]]:
    """A root whose schemas are in a registry that gives equal texts one id, and knows of no messages."""
    with serving(FakeRegistry()) as fake:
        messages = {f"{game}-value": game for game in way.games}
        sent = sent_to(way, spark, folder, games=VALUES, registry={"url": fake.url, "messages": messages})
        yield sent, registered(open_registry(sent.root.settings, environ={}), way.games, "-value")


@contextmanager
def in_a_folder(way: Way, spark: SparkSession, folder: Path) -> Iterator[tuple[Sent, dict[Version, int]]]:
    """A root whose schemas are in a folder that names an id under several subjects, with the same text."""
    sent = sent_to(way, spark, folder, games=VALUES)
    ids = registered(sent.root.registry, way.games, "-value")
    first: dict[str, int] = {}
    shared = {schema_id: first.setdefault(text_of(version), schema_id) for version, schema_id in ids.items()}
    path = Path(sent.root.settings.registry_path) / "registry.yml"
    yaml = YAML()
    manifest = yaml.load(path)
    for entry in manifest["schemas"]:
        entry["id"] = shared[entry["id"]]
    yaml.dump(manifest, path)
    yield sent, {version: shared[schema_id] for version, schema_id in ids.items()}


def name_of(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(
    ("way", "shared"),
    [
        *((way, in_a_folder) for way in ways(fleet=SHARED, from_protobuf=SHARED[:3])),
        *((way, by_confluent) for way in ways(fleet=SHARED, stream=SHARED[:3])),
    ],
    ids=name_of,
)
def test_a_record_means_the_message_of_its_own_game_where_subjects_share_an_id(
    way: Way, shared: Shared, spark: SparkSession, tmp_path: Path, command: Command
) -> None:
    with shared(way, spark, tmp_path) as (sent, ids):
        newer = {version: schema_id for version, schema_id in ids.items() if version.number == 2}
        # some are messages of one text
        assert len(set(newer.values())) < len(newer)
        older = (records_of(version, schema_id) for version, schema_id in ids.items() if version not in newer)
        sent.send([*mixed(1, *(records_of(*one) for one in newer.items())), *mixed(2, *older)])
        run_of(sent.root, command)
        assert mistakes(sent) == []


@pytest.mark.parametrize(
    ("way", "rounds"),
    [
        *((way, 1) for way in ways(fleet=tuple(TYPES), stream=STRAYS)),
        *((way, 2) for way in ways(fleet=STRAYS, from_protobuf=STRAYS)),
    ],
    ids=str,
)
def test_a_stray_record_of_another_game_makes_no_table_and_changes_none(
    way: Way, rounds: int, spark: SparkSession, tmp_path: Path, command: Command
) -> None:
    sent = sent_to(way, spark, tmp_path, games={"subjects": "(?P<game>.+)"})
    ids = registered(sent.root.registry, way.games)
    made = {version: records_of(version, schema_id) for version, schema_id in ids.items() if version.number == 2}
    whose = dict(zip(made, [*list(made)[1:], next(iter(made))], strict=True))
    strays = [refused(of.message, ids[by], made[by][1].payload, "SCHEMA_CONFLICT") for of, by in whose.items()]
    right = mixed(4, *made.values())
    # the stray records come first: in the same batch, or in one of their own
    for batch in [[*strays, *right]] if rounds == 1 else [strays, right]:
        sent.send(batch)
        run_of(sent.root, command)
        assert mistakes(sent) == []
    sentences = {
        row["game_name"]: row["sentence"] for row in sent.root.quarantine() if row["cause"] == "SCHEMA_CONFLICT"
    }
    assert [of.message for of, by in whose.items() if f"'{by.message}'" not in sentences[of.message]] == []
