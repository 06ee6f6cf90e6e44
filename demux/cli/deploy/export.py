"""`demux export bundle`: the same jobs as files, for teams that deploy by CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from demux.cli.command import console
from demux.cli.deploy.workspace import connect, discover_games, print_step, read_deployment_lock, wheel_for
from demux.core.errors import SettingsInvalid, StorageFailed
from demux.core.settings.settings import Settings
from demux.core.text import printable
from install_workflow.databricks.apply.deploy import FileCall, FileStep, deployment_of, preview_deployment, upload_wheel
from install_workflow.databricks.apply.wheel import upload_files
from install_workflow.databricks.diff.asset_bundle import HEAD, bundle_files, require_exportable
from install_workflow.databricks.jobs.jobs_api import Workspace
from install_workflow.planning.plan import waiting_lines


def bundle(settings: Settings, out: Path, discovered: bool, wheel: str | None) -> None:
    """Write a Databricks Asset Bundle that installs what `demux apply` would, and upload the wheel that it names."""
    deployment_of(settings.databricks)
    require_exportable(settings)
    workspace, found = Workspace(connect(settings)), wheel_for(settings.databricks, wheel)
    preview = preview_deployment(
        workspace,
        settings,
        found,
        discover_games(read_deployment_lock(workspace, settings.databricks), settings, discovered),
    )
    files = bundle_files(preview.jobs, settings, found.path)
    with _bundle_errors(out):
        stale = _stale(out, files)
        (out / "resources").mkdir(parents=True, exist_ok=True)
    upload_wheel(workspace, found, print_step)
    upload_files(workspace.connection, preview.files, lambda path: print_step(FileStep(FileCall.UPLOAD, path)))
    for line in waiting_lines(preview.games.waiting):
        console.print(line, soft_wrap=True)
    with _bundle_errors(out):
        _write(out, files, stale)
    console.print(f"Engine {settings.task_engine.value}.")
    console.print(f"wrote {', '.join(files)} below {printable(str(out))}", soft_wrap=True)


def _stale(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Return the files of an earlier bundle that this one has no more.

    Raises:
        SettingsInvalid: a file to be written is there and is not ours.
    """
    others = [str(folder / path) for path in files if (folder / path).exists() and not _is_ours(folder / path)]
    if others:
        raise SettingsInvalid(
            f"{', '.join(others)} was not written by `demux export bundle`.",
            "Name another folder with --out, or move it away; nothing was written.",
            paths=tuple(others),
        )
    kept = {folder / path for path in files}
    return [path for path in sorted((folder / "resources").glob("*.yml")) if path not in kept and _is_ours(path)]


def _is_ours(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.readline() == HEAD
    except (OSError, UnicodeDecodeError):
        return False


def _write(folder: Path, files: Mapping[str, str], stale: list[Path]) -> None:
    for path, text in files.items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    # the bundle would keep a job that the plan does not have
    for file in stale:
        file.unlink()
        console.print(f"removed {printable(str(file))}", soft_wrap=True)


@contextmanager
def _bundle_errors(folder: Path) -> Iterator[None]:
    """Run the block; an error of the file system becomes one of ours."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"The bundle cannot be written below {folder}: {error.strerror or error}.",
            "Name a folder that can be written with --out.",
            path=str(folder),
        ) from error
