"""The Python API: `from demux.api import Root`. What is named here is stable; everything else may change."""

from demux.api.root import Root, TableReader
from demux.operations.quarantine.records import QuarantineRecord
from demux.operations.status.model import GameStatus, Status
from demux.pipeline.round import Round
from install_workflow.planning.plan import Plan

__all__ = ["GameStatus", "Plan", "QuarantineRecord", "Root", "Round", "Status", "TableReader"]
