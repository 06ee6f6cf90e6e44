"""The Python API: `from demux.api import Root`. What is named here is stable; everything else may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demux.api.root import Root, TableReader
from demux.operations.quarantine.records import QuarantineRecord
from demux.operations.reconcile.balance import Grain, Ledger
from demux.operations.status.model import GameStatus, Status
from install_workflow.planning.plan import Plan

if TYPE_CHECKING:
    from demux.pipeline.round import Round

__all__ = ["GameStatus", "Grain", "Ledger", "Plan", "QuarantineRecord", "Root", "Round", "Status", "TableReader"]


def __getattr__(name: str) -> object:
    # it loads pyspark, which nothing else here needs
    if name == "Round":
        from demux.pipeline.round import Round

        return Round
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
