"""The options that several commands have, and the settings that they make.

It loads little: the help and the completion of a command wait for it.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import typer

from demux.cli.completion import complete_decoders, complete_games, complete_registries
from demux.core.errors import SettingsInvalid

if TYPE_CHECKING:
    from demux.core.settings.settings import Settings

# on a narrow terminal boxes would cut the names of options
_COLUMNS = shutil.get_terminal_size().columns
MARKUP: Literal["markdown"] | None = "markdown" if _COLUMNS >= 60 else None
HELP = {"help_option_names": ["-h", "--help"], "terminal_width": None if MARKUP else _COLUMNS}

SETTINGS = typer.Option(None, "--settings", "-c", help="Settings file. Default: demux.yml, if there is one.")
ROOT = typer.Option(None, "--root", help="Folder or URI of all tables; overrides `root`.")
SET = typer.Option([], "--set", help="Override one setting: --set games.limit=5. May be repeated.", metavar="KEY=VALUE")
BY_SPARK = typer.Option(
    False, "--spark", help="Start Spark, for tables that nothing else reads: deletion vectors, column mapping."
)
DECODER = typer.Option(
    None,
    help="What decodes payloads: auto, arrow or from_protobuf; overrides `decoder`.",
    autocompletion=complete_decoders,
)
WAIT = typer.Option(False, "--wait", help="Wait while another command works on this root, instead of refusing.")
# of commands that are made to run beside a `demux run --every`: they take turns with it
TAKE_TURNS = typer.Option(True, "--wait/--no-wait", help="Wait while another command works on this root, or refuse.")
GAMES = typer.Option(
    [], "--game", help="Only this game (exact name). May be repeated.", metavar="NAME", autocompletion=complete_games
)
GAME = typer.Option(
    None, "--game", help="Only this game (exact name). Default: all games.", autocompletion=complete_games
)
REGISTRY = typer.Option(
    "default",
    "--registry",
    help="The registry: a name in `registries`, or `default`.",
    autocompletion=complete_registries,
)
REGISTRIES = typer.Option(
    None,
    "--registry",
    help="Only this registry: a name in `registries`, or `default`.",
    autocompletion=complete_registries,
)
YES = typer.Option(False, "--yes", "-y", help="Do not ask.")
WHEEL = typer.Option(
    None, "--wheel", help="Wheel to install: a file, or a path in the workspace. Default: built from the checkout."
)
DISCOVERED = typer.Option(False, "--discovered", help="Also take the games that bronze has.")
TAKE_OVER = typer.Option(
    False, "--take-over", help="Continue where another command has claimed the deployment, because it is dead."
)


class ObjectStore(Enum):
    """An object store of which the demonstration knows how it is reached."""

    S3 = "s3"


def _be_quiet(ctx: typer.Context, quiet: bool) -> bool:
    return _set_console(ctx, "quiet", quiet)


def _keep_output_for_json(ctx: typer.Context, json: bool) -> bool:
    return _set_console(ctx, "stderr", json)


def _set_console(ctx: typer.Context, attribute: str, value: bool) -> bool:
    """Set what the console does while the command runs."""
    if value and not ctx.resilient_parsing:
        from demux.cli.command import console

        setattr(console, attribute, True)
        ctx.call_on_close(lambda: setattr(console, attribute, False))
    return value


JSON = typer.Option(
    False,
    "--json",
    help="Print JSON, and all else on standard error; docs/reference/json.md has the fields.",
    callback=_keep_output_for_json,
)
QUIET = typer.Option(
    False,
    "--quiet",
    "-q",
    help="Print neither progress nor results: only warnings and errors, on standard error.",
    callback=_be_quiet,
)


def command_group(summary: str) -> typer.Typer:
    """Return an empty group of commands with this help."""
    group = typer.Typer(help=summary, no_args_is_help=True, add_completion=False, rich_markup_mode=MARKUP)
    # a group of one command stays a group
    group.callback()(lambda: None)
    return group


def runs(work: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function without a body, which declares its options and its help.

    The command gets --settings, --root and --set behind its own options, and calls `work`, which is `module:function`,
    with the settings and with its own options by name. The module is loaded only then.
    """

    def command_of(declared: Callable[..., None]) -> Callable[..., None]:
        def command(
            settings_file: Path | None = SETTINGS, root: str | None = ROOT, changes: list[str] = SET, **options: Any
        ) -> None:
            # what is quiet is the console (`QUIET`)
            options.pop("quiet", None)
            settings = settings_of(settings_file, root, changes, options.pop("decoder", None))
            module, _, function = work.partition(":")
            getattr(import_module(module), function)(settings, **options)

        own, shared = inspect.signature(declared), inspect.signature(command)
        of_settings = [one for one in shared.parameters.values() if one.kind is not one.VAR_KEYWORD]
        found: Any = command
        found.__signature__ = own.replace(parameters=[*own.parameters.values(), *of_settings])
        found.__annotations__ = {**get_type_hints(command), **get_type_hints(declared)}
        found.__name__, found.__doc__ = declared.__name__, declared.__doc__
        return command

    return command_of


def settings_of(
    file: Path | None,
    root: str | None,
    changes: list[str],
    decoder: str | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings from defaults, file, environment and command line, in this order.

    With `defaults`, a command has others than the settings themselves, by dotted key.

    Raises:
        SettingsInvalid: mistakes in any of them, all at once.
    """
    from demux.core.settings.loading.loader import load, with_absolute_paths

    overrides: dict[str, object] = {}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator:
            shown = _without_secret(change)
            raise SettingsInvalid(f"--set {shown!r} has no `=`.", "Write --set KEY=VALUE.", option=shown)
        overrides[key.strip()] = value
    if root is not None:
        overrides["root"] = root
    if decoder is not None:
        overrides["decoder"] = decoder
    return with_absolute_paths(load(file, os.environ, overrides, defaults))


def _without_secret(change: str) -> str:
    from demux.core.secrets import is_secret_option

    key = re.split(r"[^\w.-]", change, maxsplit=1)[0]
    return key if is_secret_option(key) else change
