"""A `demux run --every` that lets other commands have the root in its pauses, and goes on with what they left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from demux.core.root.lock import Access, hold_root
from demux.core.settings.settings import Engine
from demux.pipeline.engines import decode_of
from deserializer.redecode.redecoder import Redecoder, rebuild
from tests.support.flow.fleet import FLEET, without_errors
from tests.support.flow.root import Root

Copy = Callable[..., Root]


def test_a_fleet_reads_tables_again_that_others_changed_while_it_was_away(
    done: Root, copy: Copy, tmp_path: Path
) -> None:
    undisturbed, root = copy(done, run=FLEET), done.copied_to(tmp_path / "disturbed", run=FLEET)
    folder = str(root.folder)
    with hold_root(folder, "run", wait=False) as hold:
        place = replace(root.workplace(), hold=hold)
        decode = decode_of(place, Engine.FLEET)
        for one in (undisturbed, root):
            one.produce(events=60, games=2, versions=2)
        without_errors(root.run(place, decode))
        known = place.control.known_games()
        with place.away(), hold_root(folder, "rebuild", wait=False, access=Access.TURNS):
            other = root.workplace()
            for game in sorted(known):
                rebuild(Redecoder(root.spark, root.layout, other.schemas), game)
        for one in (undisturbed, root):
            one.produce(events=60, games=2, versions=2)
        without_errors(root.run(place, decode))
    without_errors(undisturbed.run())
    assert len(known) == 2
    assert root.everything() == undisturbed.everything()
