"""`demux demo`: the whole flow on simulated games; again, and it continues."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
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
from demux.core.errors import RuntimeMissing
from demux.core.root.layout import logs_of
from demux.core.root.lock import Access
from demux.core.settings.loading.yaml_positions import text_of
from demux.core.settings.settings import Settings
from demux.core.streaming.jvm_cache import JvmCache
from demux.core.streaming.session import JAVA_OPTIONS, SHORT_LIVED
from demux.pipeline.round import run_all
from producer.run import ProduceRequest

# as `make up` and docker-compose.yml start them
_KAFKA_DEFAULTS = {"root": "demux-data-kafka", "registry.url": "http://127.0.0.1:8081/apis/ccompat/v7"}
_STORE_DEFAULTS = {"root": "s3://demux/demo", "store.endpoint": "http://127.0.0.1:7070"}
_STORE_KEYS = {"access_key": "demux", "secret_key": "demux-on-loopback"}
_STORE_FOLDER = "demux-data-store"
# not demux.yml, which may be the user's own
_SETTINGS_FILE = "demo.yml"
_DEMUX = "from demux.cli import main; main()"


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


def prepare() -> None:
    """Run a small demo in a folder of its own, whose JVM writes the classes that it loaded into an archive."""
    archive = JvmCache.of(os.environ).classes
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="demux-prepare-") as folder,
        console.status("running a small demo, and keeping the classes that it loads …"),
    ):
        # a Java of before 13 has no such archive, and does not stop for the word
        java = " ".join(
            [*SHORT_LIVED.values(), "-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={folder}/jsa"]
        )
        words = [
            "demo",
            "--events",
            "2000",
            "--root",
            f"{folder}/root",
            "--set",
            f"spark.conf={json.dumps({JAVA_OPTIONS: java})}",
        ]
        # without the settings of this folder
        ended = subprocess.run(
            [sys.executable, "-c", _DEMUX, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        made = Path(folder, "jsa")
        if ended.returncode:
            raise RuntimeMissing(
                f"The demo that Spark is prepared with failed: {ended.stderr.strip()}",
                "Correct what it says; then repeat.",
            )
        if not made.is_file():
            console.print("Spark's jars are here; this Java keeps no archive of its classes, as Java 13 and later do")
            return
        # another process may be starting with the one that is there
        whole = archive.with_suffix(f".{os.getpid()}")
        shutil.move(made, whole)
        whole.replace(archive)
    console.print(f"kept {archive.stat().st_size // 2**20} MB of classes in {archive}", soft_wrap=True)


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
