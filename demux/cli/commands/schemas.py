"""The commands of `demux schemas`: look at the registry and change nothing; and `approve`."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.completion import complete_games, complete_schema_ids
from demux.cli.options import BY_SPARK, JSON, REGISTRIES, REGISTRY, command_group, runs

schemas = command_group("Look at schemas, and at what a changed one would break.")

MEANT_BY = typer.Option(
    None,
    "--game",
    help="As a record of this game (exact name) means it, in the game's registry.",
    autocompletion=complete_games,
)


@schemas.command("list")
@runs("demux.cli.inspect.schemas:list_all")
def list_all(
    registry: str | None = REGISTRIES,
    json: bool = JSON,
) -> None:
    """List the schemas of all registries: id, subject, version, message, compatibility mode.

    Example: `demux schemas list`
    """


@schemas.command("show")
@runs("demux.cli.inspect.schemas:show")
def show(
    schema_id: int = typer.Argument(
        ..., metavar="ID", min=1, help="The schema's id.", autocompletion=complete_schema_ids
    ),
    columns: bool = typer.Option(False, "--columns", help="Show the silver columns that it makes instead."),
    game: str | None = MEANT_BY,
    registry: str = REGISTRY,
    json: bool = JSON,
) -> None:
    """Show a schema's text and those that it imports from the registry, or the silver columns that it makes.

    Example: `demux schemas show 7 --columns`
    """


@schemas.command("diff")
@runs("demux.cli.inspect.schemas:diff")
def diff(
    old_id: int = typer.Argument(
        ..., metavar="OLD_ID", min=1, help="The older schema's id.", autocompletion=complete_schema_ids
    ),
    new_id: int = typer.Argument(
        ..., metavar="NEW_ID", min=1, help="The newer schema's id.", autocompletion=complete_schema_ids
    ),
    game: str | None = MEANT_BY,
    registry: str = REGISTRY,
    json: bool = JSON,
) -> None:
    """Show what differs between two schemas, on the wire and for a silver table that the older one has filled.

    Example: `demux schemas diff 7 9`
    """


@schemas.command("check")
@runs("demux.cli.inspect.schemas:check_file")
def check_file(
    file: Path = typer.Argument(..., metavar="FILE", help="The changed .proto file."),
    game: list[str] = typer.Option([], "--game", help="Only subjects NAME and NAME-value. May be repeated."),
    subject: list[str] = typer.Option(
        [], "--subject", help="Only this subject, whatever message it holds. May be repeated."
    ),
    import_root: list[Path] = typer.Option(
        [], "--import-root", help="Folder that import paths start at. May be repeated. Default: found by the imports."
    ),
    registry: str | None = REGISTRIES,
    json: bool = JSON,
) -> None:
    """Say which games a changed .proto file would break, and how; exit code 3 if it breaks any.

    The file is compared with the latest version of each subject that holds a message of the same name, and with the
    silver table that all its versions make.

    Example: `demux schemas check games/chess.proto`
    """


@schemas.command("approve")
@runs("demux.cli.inspect.schemas:approve")
def approve(
    game: str = typer.Option(..., "--game", help="The game (exact name)."),
    schema: list[int] = typer.Option(
        [], "--schema", min=1, help="Only the schema of this id. May be repeated. Default: all that the game waits for."
    ),
    by_spark: bool = BY_SPARK,
) -> None:
    """Let changed schemas change a game's table that asks first (games.schema_changes: ask); rounds may run meanwhile.

    Example: `demux schemas approve --game chess`
    """
