"""The status of a root by the settings: the facts in its tables, and what the plan says of games that wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from demux.core.errors import DemuxError, PlanRefused, SettingsInvalid
from demux.core.root.layout import Layout, layout_of
from demux.core.schemas.registry_selection import game_schemas
from demux.core.settings.settings import Settings
from demux.operations.status.facts import Facts
from demux.operations.status.model import Status
from demux.operations.status.reader import StatusReader
from demux.operations.status.summary import status_of
from install_workflow.planning.plan import make_plan


def status_reader(settings: Settings) -> Callable[[], Status]:
    """Return what reads the status of the root of these settings, again and again.

    Raises:
        SettingsInvalid: only Spark opens the root's tables.
    """
    layout = require_root_without_spark(settings, "the status is read without Spark")
    reader = StatusReader(layout)

    def read() -> Status:
        facts = reader.read()
        now = datetime.now(timezone.utc)
        return status_of(
            layout.root,
            facts,
            now,
            reasons_of(facts, settings),
            lambda game: game_schemas(game, settings),
            settings.games.fresh_within_s,
        )

    return read


def require_root_without_spark(settings: Settings, why: str) -> Layout:
    """Return the root's layout; `why` its tables are opened without Spark goes into the error.

    Raises:
        SettingsInvalid: only Spark opens its tables.
        StorageFailed: no client and no mount has the root.
    """
    layout = layout_of(settings)
    layout.storage.require_reached(layout.root)
    if not layout.storage.reaches(layout.root):
        raise SettingsInvalid(
            f"The tables under {layout.root} cannot be opened without Spark, and {why}.",
            "Name a root in a folder or in an object store, with `pip install 'protobuf-demux[tables]'`; "
            "`demux plan` and `reconcile` start Spark for a root on a mount.",
            root=layout.root,
        )
    return layout


def reasons_of(facts: Facts, settings: Settings) -> Mapping[str, str]:
    """Return why each known game is not admitted that is not, by name; as `demux plan` says it."""
    running = {name: game.cluster for name, game in facts.games.items() if game.cluster is not None}
    if len(running) == len(facts.games):
        return {}
    try:
        plan = make_plan(facts.games, running, settings.games, settings.run.per_cluster)
    except PlanRefused as error:
        return dict.fromkeys(facts.games, _refused(error))
    return {waiting.game: waiting.reason for waiting in plan.waiting}


def _refused(error: DemuxError) -> str:
    return f"the plan is refused: {error.message} {error.remedy}"
