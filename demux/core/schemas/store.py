"""The schemas that rows were decoded with, kept in a Delta table: a registry that is down stops nothing known."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from demux.core.control.games_and_rounds import approvals_of, approved
from demux.core.delta.record_table import RecordTable
from demux.core.errors import DemuxError, SchemaInvalid, SchemaUnknown, SubjectAmbiguous
from demux.core.protobuf.schema.comments import only_comments
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_files
from demux.core.registry.protocol import RegisteredSchema, SchemaRegistry, SubjectVersion, no_subject
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.subject_choice import (
    ForeignSchema,
    GameSchemas,
    SharedSchema,
    choose,
    shared_by,
    shared_schemas,
)
from demux.core.settings.games import EVOLVE, Contract, SchemaChanges
from demux.core.tables import SCHEMAS

_LOG = logging.getLogger("demux")

_Answer = CompiledSchema | ForeignSchema | SchemaUnknown | SchemaInvalid


@dataclass(frozen=True, slots=True)
class GameRegistry:
    """The registry of a game's schemas.

    Attributes:
        game: which of its schemas are the game's; settings, so not kept.
        opened: returns the registry; called only when it must be asked.
        contract: what the game's table does with changed schemas, by the settings.
    """

    game: GameSchemas
    opened: Callable[[], SchemaRegistry]
    contract: Contract = EVOLVE

    @property
    def name(self) -> str:
        """Its name in the settings; schemas are kept under it."""
        return self.game.registry


@dataclass(slots=True)
class _KnownSchemas:
    """The schemas that were looked up so far."""

    schemas: dict[tuple[str, int], SharedSchema] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    subjects: dict[str, frozenset[str]] = field(default_factory=dict)

    def find(self, registry: str, ref: SchemaRef) -> SharedSchema | None:
        schema_id = ref.schema_id if ref.guid is None else self.ids.get((registry, ref.guid))
        return None if schema_id is None else self.schemas.get((registry, schema_id))

    def add(self, registry: str, shared: SharedSchema) -> None:
        """Remember the schema, with its uses and those that are known of it already."""
        before = self.schemas.get((registry, shared.schema_id))
        uses = shared.uses if before is None else tuple(dict.fromkeys((*before.uses, *shared.uses)))
        in_order = tuple(sorted(uses, key=lambda use: (use.subject, use.version)))
        self.schemas[registry, shared.schema_id] = replace(shared, uses=in_order)

    def guid_of(self, registry: str, schema_id: int) -> str | None:
        """Return the GUID that rows have named the schema by."""
        return next((guid for (name, guid), at in self.ids.items() if (name, at) == (registry, schema_id)), None)

    def subjects_in_use(self, registry: str) -> frozenset[str]:
        """Return the subjects of the registry that known schemas have."""
        return frozenset(
            use.subject for (name, _), shared in self.schemas.items() if name == registry for use in shared.uses
        )


@dataclass(slots=True)
class _LookupState:
    """The known schemas, and why others are unknown: refused, or not answered.

    Attributes:
        unanswered: why there was no answer about a ref.
        unavailable: why the registry did not answer at all; what was not asked for then is unanswered too.
    """

    known: _KnownSchemas
    refused: dict[SchemaRef, SchemaUnknown | SchemaInvalid] = field(default_factory=dict)
    unanswered: dict[SchemaRef, DemuxError] = field(default_factory=dict)
    unavailable: DemuxError | None = None


@dataclass(frozen=True, slots=True)
class _FetchedSchema:
    guid: str | None
    registered: RegisteredSchema
    shared: SharedSchema


class SchemaStore:
    """Looks up schemas: in memory, then in the table, then in the game's registry.

    Safe to share between threads. The text under an id never changes, so what is known is not asked for again, but
    before a schema is refused as another game's: it may be registered under the game's subject by now.
    """

    def __init__(
        self,
        spark: SparkSession | None,
        layout: Layout,
        registry_of: Callable[[str], GameRegistry],
        table_lock: TableLock | None = None,
    ) -> None:
        """Prepare.

        Args:
            table_lock: keeps processes apart that write the table; None where no other one does.
        """
        self._table = RecordTable(spark, layout.storage, layout.schemas, SCHEMAS)
        self._approvals = approvals_of(spark, layout)
        self._registry_of = registry_of
        self._table_lock = table_lock
        self._lock = threading.Lock()
        # one for each registry: one that does not answer must not hold up the games of another
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._known: _KnownSchemas | None = None

    def forget(self) -> None:
        """Read the table again when a schema is asked for next: another process may have written it."""
        with self._lock:
            self._known = None

    def lookup(self, refs: Iterable[SchemaRef], game: str) -> dict[SchemaRef, _Answer]:
        """Return the schema of each of the game's refs with the chosen message, or why it has none; keeps what is new.

        Raises:
            RegistryUnavailable: a schema is not known here and the registry does not answer.
        """
        found = self.lookup_all({game: set(refs)})[game]
        if isinstance(found, DemuxError):
            raise found
        return found

    def contract(self, game: str) -> Contract:
        """Return the contract of the game's table; approvals are read where it asks for them."""
        registry = self._registry_of(game)
        if registry.contract.mode is not SchemaChanges.ASK:
            return registry.contract
        return replace(registry.contract, approved=approved(self._approvals, game, registry.name))

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
        return {
            game: self._answers(refs[game], registry, learnt[registry.name]) for game, registry in registries.items()
        }

    def _learnt(self, refs: set[SchemaRef], registry: GameRegistry) -> _LookupState:
        """Return all that is known after these refs were asked for."""
        known = self._known
        if known is None or any(known.find(registry.name, ref) is None for ref in refs):
            return self._learn(refs, registry)
        return _LookupState(known)

    def _learn(self, refs: set[SchemaRef], registry: GameRegistry) -> _LookupState:
        with self._lock:
            if self._known is None:
                known = _KnownSchemas()
                self._load(known)
                # a table that could not be read is not an empty one
                self._known = known
            known, asking = self._known, self._asking[registry.name]
        learnt = _LookupState(known)
        fetched: list[_FetchedSchema] = []
        with asking:
            for ref in sorted({_without_message(ref) for ref in refs}, key=_order):
                if known.find(registry.name, ref) is None:
                    try:
                        fetched.append(_fetch(registry, ref))
                    except (SchemaUnknown, SchemaInvalid) as refusal:
                        learnt.refused[ref] = refusal
                    except DemuxError as error:
                        # what was fetched is kept; games that need no more continue
                        learnt.unanswered[ref] = error
                        if not _answers(registry.opened):
                            learnt.unavailable = error
                            break
            with self._lock:
                self._keep(fetched, registry.name, known)
        return learnt

    def _answers(
        self, refs: Iterable[SchemaRef], registry: GameRegistry, learnt: _LookupState
    ) -> dict[SchemaRef, _Answer] | DemuxError:
        answers: dict[SchemaRef, _Answer] = {}
        for ref in refs:
            if refusal := learnt.refused.get(_without_message(ref)):
                answers[ref] = refusal
            elif learnt.known.find(registry.name, ref) is not None:
                try:
                    answers[ref] = self._meant(ref, registry, learnt.known)
                except SchemaInvalid as invalid:
                    answers[ref] = invalid
                except SubjectAmbiguous as ambiguous:
                    return ambiguous
            else:
                error = learnt.unanswered.get(_without_message(ref), learnt.unavailable)
                assert error is not None
                return error
        return answers

    def _meant(self, ref: SchemaRef, registry: GameRegistry, known: _KnownSchemas) -> CompiledSchema | ForeignSchema:
        """Return the schema that a record of the game means; asks the registry before it is refused."""
        shared = known.find(registry.name, ref)
        assert shared is not None
        if registry.game.rule.own(frozenset(use.subject for use in shared.uses)):
            return choose(shared, ref.message_indexes, registry.game, frozenset())
        subjects = self._subjects(registry, known)
        answer = choose(shared, ref.message_indexes, registry.game, subjects)
        if isinstance(answer, ForeignSchema) and self._has_more_uses(shared, registry, known):
            shared = known.schemas[registry.name, shared.schema_id]
            answer = choose(shared, ref.message_indexes, registry.game, subjects)
        return answer

    def _subjects(self, registry: GameRegistry, known: _KnownSchemas) -> frozenset[str]:
        """Return all subjects of the registry; those of known schemas where it does not answer."""
        with self._asking[registry.name]:
            if registry.name not in known.subjects:
                try:
                    known.subjects[registry.name] = frozenset(registry.opened().subjects())
                except DemuxError as error:
                    _LOG.warning("The subjects of the registry %s are not known: %s", registry.name, error.message)
                    return known.subjects_in_use(registry.name)
            return known.subjects[registry.name]

    def _has_more_uses(self, shared: SharedSchema, registry: GameRegistry, known: _KnownSchemas) -> bool:
        """Ask the registry which subjects have the id by now; return whether there are more, which are kept then."""
        with self._asking[registry.name]:
            try:
                registered = registry.opened().schema(shared.schema_id)
            except DemuxError:
                return False
            more = shared_by(registered, shared.descriptor_set)
            if not set(more.uses) - set(shared.uses):
                return False
            with self._lock:
                guid = known.guid_of(registry.name, shared.schema_id)
                self._keep([_FetchedSchema(guid, registered, more)], registry.name, known)
        return True

    def _load(self, known: _KnownSchemas) -> None:
        rows = self._table.select(
            "SELECT registry, schema_id, guid, subject, version, message, descriptor_set FROM {records}"
        )
        for (registry, _), shared in shared_schemas(rows).items():
            known.add(registry, shared)
        known.ids |= {(row["registry"], row["guid"]): row["schema_id"] for row in rows if row["guid"] is not None}

    def _keep(self, fetched: list[_FetchedSchema], registry: str, known: _KnownSchemas) -> None:
        """Write the fetched schemas to the table, then remember them."""
        if fetched and self._table_lock is not None:
            with self._table_lock(self._table.path):
                # another process may have been quicker
                self._load(known)
                self._write(fetched, registry, known)
        else:
            self._write(fetched, registry, known)
        for one in fetched:
            known.add(registry, one.shared)
            if one.guid is not None:
                known.ids[registry, one.guid] = one.shared.schema_id

    def _write(self, fetched: list[_FetchedSchema], registry: str, known: _KnownSchemas) -> None:
        """Write the unknown ones: one row for each id and each version of a subject with that id."""
        new: dict[tuple[int, SubjectVersion], tuple[_FetchedSchema, str | None]] = {}
        for one in fetched:
            schema_id = one.shared.schema_id
            before = known.schemas.get((registry, schema_id))
            for use in one.shared.uses or (SubjectVersion(no_subject(schema_id), 1),):
                if before is None or (one.shared.uses and use not in before.uses):
                    guid = one.guid or new.get((schema_id, use), (one, None))[1]
                    new[schema_id, use] = (one, guid)
            if before is not None and one.guid is not None and (registry, one.guid) not in known.ids:
                self._name(registry, schema_id, one.guid)
        if new:
            now = datetime.now(timezone.utc)
            rows = [_row(one, use, guid, registry, now) for (_, use), (one, guid) in new.items()]
            try:
                self._table.append(rows)
            except Exception:
                # the commit may have succeeded
                self._known = None
                raise

    def _name(self, registry: str, schema_id: int, guid: str) -> None:
        self._table.update({"registry": registry, "schema_id": schema_id}, {"guid": guid})


def _answers(opened: Callable[[], SchemaRegistry]) -> bool:
    """Return whether the registry answers anything: one id that it fails at must not hold up the games of others."""
    try:
        opened().subjects()
    except DemuxError:
        return False
    return True


def _fetch(registry: GameRegistry, ref: SchemaRef) -> _FetchedSchema:
    registered = _registered(registry, ref)
    return _FetchedSchema(ref.guid, registered, shared_by(registered, only_comments(compile_files(registered))))


def _registered(registry: GameRegistry, ref: SchemaRef) -> RegisteredSchema:
    if ref.guid is not None:
        return registry.opened().schema_of_guid(ref.guid)
    if ref.schema_id is None:
        raise SchemaUnknown("The record has no schema id.", "Correct the producer.")
    if ref.schema_id <= 0:
        message = f"Schema id {ref.schema_id} is not positive."
        raise SchemaUnknown(message, "Correct the producer.", schema_id=ref.schema_id)
    return registry.opened().schema(ref.schema_id)


def _without_message(ref: SchemaRef) -> SchemaRef:
    # where a guid decides, the id beside it is not looked at
    return SchemaRef(ref.schema_id) if ref.guid is None else SchemaRef(None, ref.guid)


def _order(ref: SchemaRef) -> tuple[str, int]:
    return (ref.guid or "", ref.schema_id or 0)


def _row(
    one: _FetchedSchema, use: SubjectVersion, guid: str | None, registry: str, now: datetime
) -> tuple[object, ...]:
    return (
        registry,
        one.shared.schema_id,
        guid,
        use.subject,
        use.version,
        use.message,
        one.registered.path,
        one.registered.text,
        {reference.path: reference.text for reference in one.registered.references},
        bytearray(one.shared.descriptor_set),
        now,
    )
