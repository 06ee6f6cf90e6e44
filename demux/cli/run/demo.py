"""`demux demo`: the whole flow on simulated games; again, and it continues."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import typer

from demux.cli.command import command_context, console
from demux.cli.inspect.status import print_status
from demux.cli.options import ObjectStore, settings_of
from demux.cli.output.reports import round_table
from demux.cli.run.produce import produce_with_progress
from demux.cli.run.run import exit_code, with_progress
from demux.core.root.layout import logs_of
from demux.core.root.lock import Access
from demux.core.settings.loading.yaml_positions import text_of
from demux.core.settings.settings import Settings
from demux.core.streaming.session import SHORT_LIVED
from demux.pipeline.round import run_all
from producer.run import ProduceRequest

# as `make up` and docker-compose.yml start them
_KAFKA_DEFAULTS = {"root": "demux-data-kafka", "registry.url": "http://127.0.0.1:8081/apis/ccompat/v7"}
_STORE_DEFAULTS = {"root": "s3://demux/demo", "store.endpoint": "http://127.0.0.1:7070"}
_STORE_KEYS = {"access_key": "demux", "secret_key": "demux-on-loopback"}
_STORE_FOLDER = "demux-data-store"
# not demux.yml, which may be the user's own
_SETTINGS_FILE = "demo.yml"


def demo(
    events: int,
    games: int,
    kafka: bool,
    store: ObjectStore | None,
    settings_file: Path | None,
    root: str | None,
    changes: list[str],
) -> None:
    """Produce events of 20 games in 3 schema versions, 1 % of them faulty, run everything, and show where they are."""
    defaults: dict[str, object] = {}
    if kafka:
        changes = ["source.kind=kafka", *changes]
        defaults |= _KAFKA_DEFAULTS
    if store is not None:
        defaults |= {**_STORE_DEFAULTS, **_key_files()}
    settings = settings_of(settings_file, root, changes, defaults=defaults)
    options = _options(settings_file, root, changes)
    if defaults:
        folder = Path(settings.root if store is None else _STORE_FOLDER)
        options = f" -c {shlex.quote(os.path.relpath(_written(settings, folder)))}"
    spark = settings.spark.model_copy(update={"conf": {**SHORT_LIVED, **settings.spark.conf}})
    settings = settings.model_copy(update={"spark": spark})
    began = time.monotonic()
    produce_with_progress(settings, ProduceRequest(events=events, games=games, versions=3, fault_rate=0.01))
    with command_context(settings, "demo", Access.ALONE) as place:
        result = with_progress(partial(run_all, place))
        failures = [end for end in result.ended if end.error is not None]
        if failures:
            console.print(round_table(result, time.monotonic() - began))
    print_status(settings)
    console.print(
        f"{time.monotonic() - began:.0f} s; Spark's log is {logs_of(settings.root) / 'spark.log'}", soft_wrap=True
    )
    first = result.plan.tasks[0].game if result.plan.tasks else "chess"
    console.print(_next_steps(first, options), soft_wrap=True)
    raise typer.Exit(exit_code(result))


def _key_files() -> dict[str, object]:
    """Write the keys of the server that `make up` starts into files, and return references to them."""
    found: dict[str, object] = {}
    for name, key in _STORE_KEYS.items():
        path = Path(_STORE_FOLDER).absolute() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(key, encoding="ascii")
        found[f"store.{name}"] = f"secret:file{path}"
    return found


def _written(settings: Settings, folder: Path) -> Path:
    """Write what differs from the defaults into a settings file in the folder, for the next commands."""
    path = folder / _SETTINGS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    computed = {"source": {"path"}, "registry": {"path"}}
    text = text_of(settings.model_dump(mode="json", exclude_defaults=True, exclude=computed))
    path.write_text(text, encoding="utf-8")
    return path


def _next_steps(game: str, options: str) -> str:
    """Return the next commands, each on a line of its own that can be copied whole, its meaning below it."""
    command = "demux" if shutil.which("demux") else os.path.relpath(sys.argv[0])
    steps = [
        (f"show {shlex.quote(game)}", "the newest rows of a table"),
        ("produce --versions 4", "events with a new schema version; `demux run` with the same options takes them in"),
        ("plan --all", "which game runs where, and why"),
    ]
    return "\n".join(["Try next", *(f"  {command} {words}{options}\n      {meaning}" for words, meaning in steps)])


def _options(settings_file: Path | None, root: str | None, changes: list[str]) -> str:
    """Return the options that make the next command work on the same root."""
    given = [] if settings_file is None else ["-c", str(settings_file)]
    given += [] if root is None else ["--root", root]
    for change in changes:
        given += ["--set", change]
    return "".join(f" {shlex.quote(word)}" for word in given)
