"""The one place that prints JSON, and which document each command prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer
from pydantic_core import to_jsonable_python

from demux.cli.output.documents import looks, plans, repairs
from demux.core.errors import DemuxError

# by the words of the command
DOCUMENTS: Mapping[str, type] = {
    "status": looks.StatusJson,
    "show": looks.ShowJson,
    "reconcile": looks.LedgerJson,
    "plan": plans.PlanJson,
    "plan, with databricks.name": plans.WorkspacePlanJson,
    "size": plans.SizeJson,
    "grants plan, grants apply": plans.GrantsJson,
    "run": repairs.RoundJson,
    "deserialize": repairs.DecodedGameJson,
    "schemas list": looks.SchemasJson,
    "schemas show": looks.SchemaTextJson,
    "schemas show --columns": looks.SilverColumnsJson,
    "schemas diff": looks.DiffJson,
    "schemas check": looks.CheckJson,
    "quarantine list": repairs.QuarantineJson,
    "quarantine show": repairs.RecordsJson,
    "quarantine drop --dry-run": repairs.DropJson,
    "backfill --status": repairs.BackfillsJson,
    "backfill --dry-run": repairs.BackfillEstimateJson,
    "forget --dry-run": repairs.ForgetJson,
    "maintain": repairs.MaintenanceJson,
}


def print_json(document: Mapping[str, Any], indent: int | None = 2) -> None:
    """Print a document on standard output."""
    typer.echo(as_json(document, indent))


def as_json(document: Mapping[str, Any], indent: int | None = None) -> str:
    """Return a document in ASCII, so that no name can do anything to a terminal."""
    return json.dumps(document, indent=indent, default=to_jsonable_python)


def error_json(error: DemuxError) -> plans.ErrorJson:
    """Return an error as a document has it."""
    return {"condition": error.condition, "message": error.message, "remedy": error.remedy}
