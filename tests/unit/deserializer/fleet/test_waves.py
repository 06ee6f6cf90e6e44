"""The loop that learns schemas: what is decoded again, with which decisions, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from demux.core.causes import Cause
from demux.core.columns.types import Struct
from demux.core.delta.parquet_writer import TableFile
from demux.core.errors import DemuxError, RegistryUnavailable
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from deserializer.decoders.schema_decision import UNDECIDED, Decisions, Refusal
from deserializer.fleet.waves import RefsByGame, error_of, write_in_waves
from deserializer.fleet.worker import GameFiles, WrittenGame

ONE, TWO = SchemaRef(1), SchemaRef(2)
BAD = TableFile("quarantine", "bad", None, 1, 1, "{}")


@dataclass(slots=True)
class Games:
    """Two games whose rows have refs; a worker writes a file when each of its refs is decided."""

    refs: Mapping[str, Mapping[str, SchemaRef]]
    unavailable: frozenset[str] = frozenset()
    decisions: dict[str, Decisions] = field(default_factory=dict)
    waves: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    # what a worker meets only once it has decisions
    later: Callable[[str, int], Mapping[SchemaRef, int]] = lambda game, wave: {}

    def known(self, game: str) -> Decisions:
        return self.decisions.get(game, UNDECIDED)

    def learn(self, refs: RefsByGame) -> dict[str, DemuxError]:
        for game in refs.keys() - self.unavailable:
            by_ref = dict.fromkeys((*self.known(game).by_ref, *refs[game]), Refusal(Cause.INVALID_SCHEMA, "No."))
            self.decisions[game] = replace(UNDECIDED, by_ref=by_ref)
        return {game: RegistryUnavailable("It is down.", "Wait.") for game in refs.keys() & self.unavailable}

    def work(self, game: str, paths: frozenset[str]) -> GameFiles:
        names = tuple(sorted(paths))
        return GameFiles(Storage(), game, names, (1,) * len(names), f"silver/{game}", self.known(game), 0)

    def run(self, works: Sequence[GameFiles]) -> tuple[list[WrittenGame], list[TableFile]]:
        self.waves.append([(work.game, work.paths) for work in works])
        done = []
        for work in works:
            refs = [self.refs[work.game][path] for path in work.paths]
            unknown = {ref: refs.count(ref) for ref in refs if ref not in work.decisions.by_ref}
            unknown |= self.later(work.game, len(self.waves))
            done.append(WrittenGame(work.game, work.paths, 0 if unknown else len(refs), unknown=unknown))
        return done, [BAD]

    def written(self) -> tuple[Mapping[str, Sequence[WrittenGame]], list[TableFile]]:
        works = [self.work(game, frozenset(files)) for game, files in self.refs.items()]
        return write_in_waves(Storage(), works, self.run, self.known, self.learn, self.work)


def test_what_has_unknown_schemas_is_decoded_again_and_nothing_else() -> None:
    games = Games({"chess": {"a": ONE, "b": TWO}, "go": {"c": ONE}})
    games.decisions["go"] = replace(UNDECIDED, by_ref={ONE: Refusal(Cause.INVALID_SCHEMA, "No.")})
    written, bad = games.written()
    assert games.waves == [[("chess", ("a", "b")), ("go", ("c",))], [("chess", ("a", "b"))]]
    assert {game: [part.rows_in for part in parts] for game, parts in written.items()} == {"go": [1], "chess": [2]}
    # each wave's files for quarantine are committed
    assert bad == [BAD, BAD]


def test_a_game_whose_registry_is_down_ends_with_its_error_and_the_others_go_on() -> None:
    games = Games({"chess": {"a": ONE}, "go": {"c": ONE}}, unavailable=frozenset({"chess"}))
    written, _ = games.written()
    assert isinstance(error_of(written["chess"]), RegistryUnavailable)
    assert (error_of(written["go"]), [part.rows_in for part in written["go"]]) == (None, [1])
    assert games.waves[1:] == [[("go", ("c",))]]


def test_schemas_that_never_end_are_an_error() -> None:
    games = Games({"chess": {"a": ONE}}, later=lambda game, wave: {SchemaRef(100 + wave): 1})
    written, _ = games.written()
    assert len(games.waves) == 3
    assert "still had unknown schemas after 3 looks" in str(error_of(written["chess"]))


@pytest.mark.parametrize("files", [{}, {"a": ONE}])
def test_known_schemas_take_one_wave(files: Mapping[str, SchemaRef]) -> None:
    games = Games({"chess": files})
    games.decisions["chess"] = Decisions(Struct(()), (), {ONE: Refusal(Cause.INVALID_SCHEMA, "No.")})
    games.written()
    assert len(games.waves) == 1
