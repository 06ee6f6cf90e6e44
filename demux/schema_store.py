"""The schemas that rows were decoded with, kept in a Delta table: a registry that is down stops nothing known."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.contract import EVOLVE, Contract, SchemaChanges
from demux.control import approved
from demux.errors import DemuxError, SchemaInvalid, SchemaUnknown
from demux.lock import TableLock
from demux.protobuf.comments import only_comments
from demux.protobuf.compile import CompiledSchema, compile_schema
from demux.protobuf.message_path import with_message
from demux.registry.protocol import RegisteredSchema, SchemaRegistry
from demux.schema_ref import SchemaRef
from demux.spark_types import spark_struct
from demux.storage import table_exists
from demux.tables import SCHEMAS

_Answer = CompiledSchema | SchemaUnknown | SchemaInvalid


@dataclass(frozen=True, slots=True)
class GameRegistry:
    """The registry of a game's schemas.

    Attributes:
        name: its name in the settings; schemas are kept under it.
        opened: returns the registry; called only when it must be asked.
        messages: which message payloads of a subject hold, where the rows do not say; settings, so not kept.
        contract: what the game's table does with changed schemas, by the settings.
    """

    name: str
    opened: Callable[[], SchemaRegistry]
    messages: Mapping[str, str] = field(default_factory=dict)
    contract: Contract = EVOLVE


@dataclass(slots=True)
class _Known:
    """What was looked up so far, by the registry's name and the id or GUID."""

    schemas: dict[tuple[str, int], CompiledSchema] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)

    def find(self, registry: str, ref: SchemaRef) -> CompiledSchema | None:
        schema_id = ref.schema_id if ref.guid is None else self.ids.get((registry, ref.guid))
        return None if schema_id is None else self.schemas.get((registry, schema_id))


@dataclass(slots=True)
class _Learnt:
    """All that is known, why some refs are not, and why the registry did not answer."""

    known: _Known
    refused: dict[SchemaRef, SchemaUnknown | SchemaInvalid] = field(default_factory=dict)
    unavailable: DemuxError | None = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    guid: str | None
    registered: RegisteredSchema
    compiled: CompiledSchema


class SchemaStore:
    """Looks schemas up: in memory, then in the table, then in the game's registry, which is asked only for unknown ids.

    Safe to share between threads. A schema never changes under its id, so what is known is never asked again.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        registry_of: Callable[[str], GameRegistry],
        table_lock: TableLock | None = None,
        approvals: str | None = None,
    ) -> None:
        """Prepare.

        Args:
            spark: the session.
            path: the table's path.
            registry_of: says which registry a game has.
            table_lock: keeps processes apart that write the table; None where no other one does.
            approvals: the path of the table of approved schemas; None where nobody approves any.
        """
        self._spark = spark
        self._path = path
        self._registry_of = registry_of
        self._table_lock = table_lock
        self._approvals = approvals
        self._lock = threading.Lock()
        # one for each registry: one that does not answer must not hold up the games of another
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._known: _Known | None = None

    def forget(self) -> None:
        """Read the table again when a schema is asked for next: somebody else may have written it."""
        with self._lock:
            self._known = None

    def lookup(self, refs: Iterable[SchemaRef], game: str) -> dict[SchemaRef, _Answer]:
        """Return the schema of each of the game's refs with the message meant, or why it has none; keeps what is new.

        Raises:
            RegistryUnavailable: a schema is not known here and the registry does not answer.
        """
        found = self.lookup_all({game: set(refs)})[game]
        if isinstance(found, DemuxError):
            raise found
        return found

    def contract(self, game: str) -> Contract:
        """Return what the game's table does with changed schemas; what is approved by now is read where it asks."""
        registry = self._registry_of(game)
        if registry.contract.mode is not SchemaChanges.ASK or self._approvals is None:
            return registry.contract
        return replace(registry.contract, approved=approved(self._spark, self._approvals, game, registry.name))

    def lookup_all(self, refs: Mapping[str, Collection[SchemaRef]]) -> dict[str, dict[SchemaRef, _Answer] | DemuxError]:
        """Return for each game what `lookup` does, or what it raises; one write of the table for each registry."""
        registries = {game: self._registry_of(game) for game in refs}
        wanted: defaultdict[str, set[SchemaRef]] = defaultdict(set)
        for game, registry in registries.items():
            wanted[registry.name].update(refs[game])
        learnt = {
            registry.name: self._learnt(wanted[registry.name], registry)
            for registry in {registry.name: registry for registry in registries.values()}.values()
        }
        return {game: _told(refs[game], registry, learnt[registry.name]) for game, registry in registries.items()}

    def _learnt(self, refs: set[SchemaRef], registry: GameRegistry) -> _Learnt:
        """Return all that is known after these refs were asked for."""
        known = self._known
        if known is None or any(known.find(registry.name, ref) is None for ref in refs):
            return self._learn(refs, registry)
        return _Learnt(known)

    def _learn(self, refs: set[SchemaRef], registry: GameRegistry) -> _Learnt:
        with self._lock:
            if self._known is None:
                self._known = _Known()
                self._load(self._known)
            known, asking = self._known, self._asking[registry.name]
        learnt = _Learnt(known)
        fetched: list[_Fetched] = []
        with asking:
            for ref in sorted({_without_message(ref) for ref in refs}, key=_order):
                if known.find(registry.name, ref) is None:
                    try:
                        registered = _fetch(registry, ref)
                        compiled = compile_schema(registered)
                        compiled = replace(compiled, descriptor_set=only_comments(compiled.descriptor_set))
                        fetched.append(_Fetched(ref.guid, registered, compiled))
                    except (SchemaUnknown, SchemaInvalid) as refusal:
                        learnt.refused[ref] = refusal
                    except DemuxError as unavailable:
                        # what was fetched is kept; games that need no more go on
                        learnt.unavailable = unavailable
                        break
            with self._lock:
                self._keep(fetched, registry.name, known)
        return learnt

    def _load(self, known: _Known) -> None:
        if not table_exists(self._spark, self._path):
            return
        for row in self._spark.read.format("delta").load(self._path).collect():
            known.schemas[row.registry, row.schema_id] = CompiledSchema(
                row.schema_id, row.subject, row.version, row.message, bytes(row.descriptor_set), row.fingerprint
            )
            if row.guid is not None:
                known.ids[row.registry, row.guid] = row.schema_id

    def _keep(self, fetched: list[_Fetched], registry: str, known: _Known) -> None:
        """Write what was fetched into the table, then remember it."""
        if fetched and self._table_lock is not None:
            with self._table_lock(self._path):
                # another process may have been quicker
                self._load(known)
                self._write(fetched, registry, known)
        else:
            self._write(fetched, registry, known)
        for one in fetched:
            known.schemas.setdefault((registry, one.compiled.schema_id), one.compiled)
            if one.guid is not None:
                known.ids[registry, one.guid] = one.compiled.schema_id

    def _write(self, fetched: list[_Fetched], registry: str, known: _Known) -> None:
        """Write what is not known yet: one row for each id, whatever it was asked by."""
        new: dict[int, _Fetched] = {}
        for one in fetched:
            schema_id = one.compiled.schema_id
            if (registry, schema_id) not in known.schemas:
                new[schema_id] = replace(one, guid=one.guid or (new[schema_id].guid if schema_id in new else None))
            elif one.guid is not None and (registry, one.guid) not in known.ids:
                self._name(registry, schema_id, one.guid)
        if new:
            now = datetime.now(timezone.utc)
            rows = [_row(one, registry, now) for one in new.values()]
            frame = self._spark.createDataFrame(rows, spark_struct(SCHEMAS))
            frame.coalesce(1).write.format("delta").mode("append").save(self._path)

    def _name(self, registry: str, schema_id: int, guid: str) -> None:
        of_id = (F.col("registry") == registry) & (F.col("schema_id") == schema_id)
        DeltaTable.forPath(self._spark, self._path).update(of_id, {"guid": F.lit(guid)})


def _fetch(registry: GameRegistry, ref: SchemaRef) -> RegisteredSchema:
    if ref.guid is not None:
        return registry.opened().schema_of_guid(ref.guid)
    if ref.schema_id is None:
        raise SchemaUnknown("The record has no schema id.", "Correct the producer.")
    if ref.schema_id <= 0:
        cause = f"Schema id {ref.schema_id} is not positive."
        raise SchemaUnknown(cause, "Correct the producer.", schema_id=ref.schema_id)
    return registry.opened().schema(ref.schema_id)


def _told(refs: Iterable[SchemaRef], registry: GameRegistry, learnt: _Learnt) -> dict[SchemaRef, _Answer] | DemuxError:
    answers: dict[SchemaRef, _Answer] = {}
    for ref in refs:
        if refusal := learnt.refused.get(_without_message(ref)):
            answers[ref] = refusal
        elif learnt.known.find(registry.name, ref) is not None:
            answers[ref] = _meant(learnt.known, registry, ref)
        else:
            assert learnt.unavailable is not None
            return learnt.unavailable
    return answers


def _meant(known: _Known, registry: GameRegistry, ref: SchemaRef) -> _Answer:
    schema = known.find(registry.name, ref)
    assert schema is not None
    try:
        return with_message(schema, ref.message_indexes, registry.messages.get(schema.subject))
    except SchemaInvalid as invalid:
        return invalid


def _without_message(ref: SchemaRef) -> SchemaRef:
    # where a guid decides, the id beside it is not looked at
    return SchemaRef(ref.schema_id) if ref.guid is None else SchemaRef(None, ref.guid)


def _order(ref: SchemaRef) -> tuple[str, int]:
    return (ref.guid or "", ref.schema_id or 0)


def _row(one: _Fetched, registry: str, now: datetime) -> tuple[object, ...]:
    return (
        registry,
        one.compiled.schema_id,
        one.guid,
        one.compiled.subject,
        one.compiled.version,
        one.compiled.message,
        one.registered.path,
        one.registered.text,
        {reference.path: reference.text for reference in one.registered.references},
        bytearray(one.compiled.descriptor_set),
        one.compiled.fingerprint,
        now,
    )
