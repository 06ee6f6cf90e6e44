"""A server that is built from Go modules, once, with what a folder below locks/ pins.

go.mod there names its version and those of all modules that it needs, go.sum their checksums, which `go` checks.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tools.servers.errors import PackagesUnavailable, last_lines

_BUILD_S = 900


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program in Go.

    Attributes:
        folder: has go.mod and go.sum, and what of the program is our own.
        package: what is built: a path below a module, or `.` for the folder.
    """

    name: str
    folder: Path
    package: str

    @property
    def pinned(self) -> str:
        """Names what the folder pins, in 12 hex digits."""
        files = sorted(path for path in self.folder.iterdir() if path.suffix in (".mod", ".sum", ".go"))
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def built(program: GoProgram, cache: Path) -> Path:
    """Return the program's file, built the first time; safe from several processes.

    Raises:
        PackagesUnavailable: there is no Go, or it could not be built.
    """
    servers = cache / "servers"
    file = servers / f"{program.folder.name}-{program.pinned}" / program.folder.name
    servers.mkdir(parents=True, exist_ok=True)
    with FileLock(servers / f"{program.folder.name}.lock"):
        if not file.exists():
            _build(program, file, servers)
    return file


def _build(program: GoProgram, file: Path, servers: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise PackagesUnavailable(
            f"The {program.name} is built from its Go module, and there is no `go` in PATH.",
            "Install Go 1.25 or newer, or take the server of docker-compose.yml; all else works without it.",
        )
    with tempfile.TemporaryDirectory(prefix=f"{program.folder.name}-", dir=servers) as own:
        module, fresh, log = Path(own, "module"), Path(own, "program"), Path(own, "log")
        shutil.copytree(program.folder, module)
        words = [go, "build", "-mod=readonly", "-trimpath", "-o", str(fresh / file.name), program.package]
        with log.open("wb") as out:
            try:
                code = subprocess.run(
                    words, cwd=module, stdout=out, stderr=out, timeout=_BUILD_S, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        if code != 0:
            raise PackagesUnavailable(
                f"The {program.name} could not be built from its Go module: {last_lines(log)}",
                "Check that `go` reaches its module proxy (`go env GOPROXY`), and try again.",
            )
        file.parent.mkdir(exist_ok=True)
        (fresh / file.name).replace(file)
