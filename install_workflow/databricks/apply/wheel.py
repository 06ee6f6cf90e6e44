"""The wheel that the tasks run: built from the checkout, or taken from a file, under a path made from its content."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from demux.core.errors import PlanRefused, SettingsInvalid
from demux.core.http.failures import one_line
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.workspace_files import size, upload
from install_workflow.databricks.jobs.compute import requirements_of
from install_workflow.databricks.jobs.oversized_settings import SettingsFile, settings_paths

CHECKOUT = Path(__file__).parents[3]

_IN_WORKSPACE = ("/Volumes/", "/Workspace/")
# name, version, perhaps a build, tags
_NAME = re.compile(r"(protobuf_demux-[^-/]+)(?:-\d[^-/]*)?(-[^-/]+-[^-/]+-[^-/]+\.whl)")
# our build: a digit, as a build must begin with one, and the hash
_OURS = re.compile(r"protobuf_demux-[^-/]+-0[0-9a-f]{12}-[^-/]+-[^-/]+-[^-/]+\.whl")
_METADATA = re.compile(r"protobuf_demux-[^/]+\.dist-info/METADATA")
# what the library for archives raises where one is damaged, encrypted or packed in a way that it does not know
_UNPACKABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, ValueError, EOFError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Wheel:
    """The wheel of a deployment.

    Attributes:
        content: its bytes; None for one that another process put there.
    """

    path: str
    content: bytes | None


def find_wheel(given: str | None, folder: str, checkout: Path = CHECKOUT) -> Wheel:
    """Return the wheel; where none is given, it is built from the checkout, which takes a second and no network.

    Its path depends on what is in it: another content never takes another's place, the same one is uploaded once.

    Args:
        given: a file on this machine, or a path below /Volumes or /Workspace, which is taken as it is.
        folder: where the deployment's wheels are; see `wheel_folder`.

    Raises:
        SettingsInvalid: there is nothing to build it from, or the file is no wheel of ours.
    """
    if given is not None and given.startswith(_IN_WORKSPACE):
        return Wheel(given, None)
    name, content = _built(checkout) if given is None else _read(Path(given))
    members = _members(name, content)
    return Wheel(f"{folder}/{_name_with_digest(name, members)}", _pack(members))


def is_our_wheel(path: str) -> bool:
    """Return whether the name of the file is one that `find_wheel` makes."""
    return _OURS.fullmatch(path.rpartition("/")[2]) is not None


def wheels_of(jobs: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the paths of the wheels that the jobs' tasks run, from the jobs' settings."""
    jobs = list(jobs)
    libraries = (library for job in jobs for task in job.get("tasks", []) for library in task.get("libraries", []))
    required = (requirement for job in jobs for requirement in requirements_of(job))
    return frozenset(
        [*(library["whl"] for library in libraries if "whl" in library)]
        + [path for path in required if path.endswith(".whl")]
    )


def must_upload(connection: WorkspaceConnection, wheel: Wheel) -> bool:
    """Return whether the wheel is not there yet; asks once, changes nothing.

    Raises:
        SettingsInvalid: it is not there, and is not ours to upload.
    """
    found = size(connection, wheel.path)
    if wheel.content is not None:
        return found != len(wheel.content)
    if found is None:
        raise SettingsInvalid(
            f"There is no wheel {wheel.path} in the workspace.",
            "Correct --wheel, or name a file on this machine, which is then uploaded.",
            path=wheel.path,
        )
    return False


def _members(name: str, content: bytes) -> dict[str, bytes]:
    """Return the files of the wheel, sorted."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {member: archive.read(member) for member in sorted(archive.namelist())}
    except _UNPACKABLE as error:
        raise _no_wheel(name, one_line(str(error))) from error
    if not any(_METADATA.fullmatch(member) for member in members):
        raise _no_wheel(name, "it has no protobuf_demux-….dist-info/METADATA")
    return members


def _name_with_digest(name: str, members: Mapping[str, bytes]) -> str:
    found = _NAME.fullmatch(name)
    if found is None:
        raise _no_wheel(name, "it is not named protobuf_demux-VERSION-….whl")
    digest = hashlib.sha256()
    for member, content in members.items():
        digest.update(f"{member}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return f"{found[1]}-0{digest.hexdigest()[:12]}{found[2]}"


def _pack(members: Mapping[str, bytes]) -> bytes:
    """Return the files as an archive: uncompressed, as two machines may compress them into different bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content)
    return packed.getvalue()


def _read(file: Path) -> tuple[str, bytes]:
    try:
        return file.name, file.read_bytes()
    except OSError as error:
        raise _no_wheel(str(file), error.strerror or str(error)) from error


def _no_wheel(name: str, reason: str) -> SettingsInvalid:
    return SettingsInvalid(
        f"{name} cannot be used as the wheel: {reason}.", "Name a wheel of this project with --wheel FILE.", file=name
    )


def _built(checkout: Path) -> tuple[str, bytes]:
    """Return name and content of the wheel; hatchling gives the same bytes for the same files."""
    if not (checkout / "pyproject.toml").is_file():
        raise SettingsInvalid(
            "There is no checkout here to build the wheel from.",
            "Name a wheel that was built before with --wheel FILE: on this machine, in a volume or below /Workspace.",
        )
    with TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        done = subprocess.run(build, cwd=checkout, capture_output=True, text=True, check=False)
        wheels = [*Path(folder).glob("*.whl")]
        if done.returncode or len(wheels) != 1:
            # the last line of a traceback says what it was
            reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise SettingsInvalid(
                f"The wheel cannot be built from {checkout}: {one_line(reason)}.",
                "Install hatchling (`make setup` does), or name a wheel that was built before with --wheel FILE.",
            )
        return wheels[0].name, wheels[0].read_bytes()


def find_missing_files(connection: WorkspaceConnection, files: Iterable[SettingsFile]) -> tuple[SettingsFile, ...]:
    """Return the files that are not there yet; asks once for each, changes nothing."""
    return tuple(file for file in files if size(connection, file.path) != len(file.content))


def upload_files(connection: WorkspaceConnection, files: Iterable[SettingsFile], report: Callable[[str], None]) -> None:
    """Upload the files that are missing; again, it changes nothing."""
    for file in files:
        if upload(connection, file.path, file.content):
            report(file.path)


def find_missing_plan_files(
    connection: WorkspaceConnection, jobs: Iterable[Mapping[str, Any]], files: Iterable[SettingsFile]
) -> tuple[SettingsFile, ...]:
    """Return the missing files that a saved plan's jobs read; changes nothing.

    Raises:
        PlanRefused: the settings made another file when the plan was saved, and that one is not there.
    """
    paths = settings_paths(jobs)
    ours = {file.path: file for file in files if file.path in paths}
    if lost := sorted(path for path in paths - ours.keys() if size(connection, path) is None):
        raise PlanRefused(
            f"The plan's tasks read {', '.join(lost)}, which is not in the workspace and not made by these settings.",
            "Apply it with the settings that it was made with, or make it again.",
            paths=tuple(lost),
        )
    return find_missing_files(connection, ours.values())
