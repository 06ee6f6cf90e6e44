"""The servers' files: fetched by the Ivy that PySpark brings, verified, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyspark
from filelock import FileLock

from tools.servers.errors import ChecksumMismatch, PackagesUnavailable
from tools.servers.java import java_of_the_machine

KAFKA_VERSION = "4.1.1"
REGISTRY_VERSION = "3.3.3"
LOCKS = Path(__file__).parents[2] / "locks"
_TIMEOUT_S = 900
_COMPLETE = "SHA256SUMS"
_IVY_FILE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="protobuf-demux" module="{name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Package:
    """A server's files.

    Attributes:
        name: the first part of its folder's name.
        version: the second part.
        dependencies: what Ivy shall fetch, as elements of an Ivy file.
        sums: the list of its files, in the format of `sha256sum`.
    """

    name: str
    version: str
    dependencies: str
    sums: Path


# the broker's pom leaves the logger out, and without one it says nothing at all
KAFKA = Package(
    "kafka",
    KAFKA_VERSION,
    f'<dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="default->default"/>'
    '<dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="default->default"/>',
    LOCKS / "kafka.sha256",
)
REGISTRY = Package(
    "registry",
    REGISTRY_VERSION,
    f'<dependency org="io.apicurio" name="apicurio-registry-app" rev="{REGISTRY_VERSION}" transitive="false"'
    ' conf="default->default">'
    '<artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/></dependency>',
    LOCKS / "registry.sha256",
)

Fetch = Callable[[Package, Path], None]


def fetch(package: Package, into: Path) -> None:
    """Download the package's files into the folder, by Ivy and its default settings.

    Ivy's own cache is a temporary folder: a resolution that broke half-way poisons no later one.

    Raises:
        PackagesUnavailable: Ivy ended with an error, or not in 15 minutes.
    """
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise PackagesUnavailable("PySpark brings no Ivy.", "Install the locked packages again with `make setup`.")
    with tempfile.TemporaryDirectory(prefix="ivy-") as own:
        asked = Path(own) / "ivy.xml"
        asked.write_text(_IVY_FILE.format(name=package.name, dependencies=package.dependencies), encoding="utf-8")
        pattern = f"{into}/[artifact]-[revision](-[classifier]).[ext]"
        words = ["-ivy", str(asked), "-retrieve", pattern, "-cache", f"{own}/cache"]
        try:
            ended = subprocess.run(
                [java_of_the_machine(), "-jar", str(jars[-1]), *words],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _unavailable(package, "no end in 15 minutes") from error
    if ended.returncode:
        raise _unavailable(package, _why(ended.stdout))


def installed(package: Package, cache: Path, download: Fetch = fetch) -> Path:
    """Return the folder with the package's verified files, unpacked; downloads them the first time.

    Safe at any time and from several processes: a folder is either complete or not there.

    Args:
        cache: our folder in the user's cache.
        download: puts the package's files into a folder.

    Raises:
        PackagesUnavailable: the files could not be fetched.
        ChecksumMismatch: a file is not the one on the list, missing, or too many; nothing is kept.
    """
    servers = cache / "servers"
    servers.mkdir(parents=True, exist_ok=True)
    folder = servers / f"{package.name}-{package.version}"
    sums = package.sums.read_text(encoding="ascii")
    with FileLock(servers / f"{package.name}.lock"):
        if not _is_complete(folder, sums):
            with tempfile.TemporaryDirectory(prefix=f"{package.name}-", dir=servers) as own:
                fresh = Path(own) / "files"
                fresh.mkdir()
                download(package, fresh)
                verify(fresh, sums, package.sums.name)
                _unpack(fresh)
                (fresh / _COMPLETE).write_text(sums, encoding="ascii")
                # of an older list of the same version
                shutil.rmtree(folder, ignore_errors=True)
                fresh.replace(folder)
    return folder


def verify(folder: Path, sums: str, listed_in: str) -> None:
    """Return when the folder holds exactly the files of the list.

    Raises:
        ChecksumMismatch: names every file that differs.
    """
    expected = {name: digest for digest, name in (line.split() for line in sums.splitlines())}
    found = {name: digest for digest, name in (line.split() for line in listed(folder).splitlines())}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise ChecksumMismatch(
            f"{len(wrong)} of the downloaded files are not what locks/{listed_in} says: {', '.join(wrong[:5])}.",
            "Download again; when the version was changed on purpose, write the list again with "
            "`python -m tools.servers lock`, and read the difference.",
            files=tuple(wrong),
        )


def listed(folder: Path) -> str:
    """Return the files of the folder in the format of `sha256sum`, sorted by name."""
    lines = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{_digest(file.read)}  {path.name}\n")
    return "".join(lines)


def write_sums(package: Package) -> None:
    """Download the package and write its list again, which is trusted from then on."""
    with tempfile.TemporaryDirectory(prefix=f"{package.name}-") as own:
        fetch(package, Path(own))
        package.sums.write_text(listed(Path(own)), encoding="ascii", newline="\n")


def _digest(read: Callable[[int], bytes]) -> str:
    digest = hashlib.sha256()
    while block := read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _is_complete(folder: Path, sums: str) -> bool:
    mark = folder / _COMPLETE
    return mark.is_file() and mark.read_text(encoding="ascii") == sums


def _unpack(folder: Path) -> None:
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        archive.unlink()


def _why(summary: str) -> str:
    """The first line of Ivy's problem summary that names a reason."""
    lines = [line.strip() for line in summary.splitlines()]
    reasons = [line for line in lines if "error" in line.lower() or "not found" in line]
    return reasons[0] if reasons else (lines or ["Ivy said nothing"])[-1]


def _unavailable(package: Package, why: str) -> PackagesUnavailable:
    return PackagesUnavailable(
        f"{package.name} {package.version} could not be fetched: {why}.",
        "Check that Java reaches the JVM packages from here (JAVA_TOOL_OPTIONS can name a proxy), and try again.",
        package=package.name,
    )
