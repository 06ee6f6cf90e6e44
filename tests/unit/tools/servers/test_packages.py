from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tools.servers.errors import ChecksumMismatch, PackagesUnavailable
from tools.servers.packages import KAFKA, REGISTRY, Fetch, Package, installed, listed, verify

FILES: Mapping[str, bytes] = {"a.jar": b"one", "b.jar": b"two"}


def sums(files: Mapping[str, bytes]) -> str:
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())


def delivering(files: Mapping[str, bytes]) -> Fetch:
    def fetch(package: Package, into: Path) -> None:
        for name, content in files.items():
            (into / name).write_bytes(content)

    return fetch


def unexpected(package: Package, into: Path) -> None:
    raise AssertionError("downloaded again")


@pytest.fixture
def package(tmp_path: Path) -> Package:
    lock = tmp_path / "server.sha256"
    lock.write_text(sums(FILES), encoding="ascii")
    return Package("server", "1.0", "", lock)


def kept(cache: Path) -> list[str]:
    """What is below the servers' folder, but for the lock files."""
    return sorted(path.name for path in (cache / "servers").iterdir() if path.suffix != ".lock")


def test_the_files_are_kept_under_name_and_version(package: Package, tmp_path: Path) -> None:
    folder = installed(package, tmp_path / "cache", delivering(FILES))
    assert folder == tmp_path / "cache" / "servers" / "server-1.0"
    assert (folder / "a.jar").read_bytes() == b"one"


def test_the_second_time_nothing_is_downloaded(package: Package, tmp_path: Path) -> None:
    folder = installed(package, tmp_path / "cache", delivering(FILES))
    assert installed(package, tmp_path / "cache", unexpected) == folder


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({**FILES, "b.jar": b"forged"}, "b.jar"),
        ({"a.jar": b"one"}, "b.jar"),
        ({**FILES, "c.jar": b"too many"}, "c.jar"),
    ],
    ids=["other content", "missing", "too many"],
)
def test_files_that_are_not_on_the_list_are_refused_and_leave_nothing(
    package: Package, tmp_path: Path, files: Mapping[str, bytes], named: str
) -> None:
    with pytest.raises(ChecksumMismatch, match=rf"1 of the .* locks/server\.sha256 says: {named}\."):
        installed(package, tmp_path / "cache", delivering(files))
    assert kept(tmp_path / "cache") == []


def test_a_download_that_breaks_leaves_nothing_and_the_next_one_is_whole(package: Package, tmp_path: Path) -> None:
    def broken(package: Package, into: Path) -> None:
        (into / "a.jar").write_bytes(b"one")
        raise PackagesUnavailable("The line went dead.", "Try again.")

    with pytest.raises(PackagesUnavailable):
        installed(package, tmp_path / "cache", broken)
    assert kept(tmp_path / "cache") == []
    assert installed(package, tmp_path / "cache", delivering(FILES)).is_dir()


def test_a_list_that_changed_is_a_reason_to_download_again(package: Package, tmp_path: Path) -> None:
    installed(package, tmp_path / "cache", delivering(FILES))
    package.sums.write_text(sums({"c.jar": b"three"}), encoding="ascii")
    folder = installed(package, tmp_path / "cache", delivering({"c.jar": b"three"}))
    assert sorted(path.name for path in folder.glob("*.jar")) == ["c.jar"]


def test_two_at_once_download_once(package: Package, tmp_path: Path) -> None:
    downloads: list[Package] = []
    together = Barrier(2)

    def counting(package: Package, into: Path) -> None:
        downloads.append(package)
        delivering(FILES)(package, into)

    def start() -> Path:
        together.wait()
        return installed(package, tmp_path / "cache", counting)

    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(start) for _ in range(2))
        assert first.result() == second.result()
    assert len(downloads) == 1


def archive(name: str) -> bytes:
    """A .tar.gz with one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = 2
        tar.addfile(info, io.BytesIO(b"hi"))
    return packed.getvalue()


def test_an_archive_is_unpacked_and_not_kept(package: Package, tmp_path: Path) -> None:
    files = {"server.tar.gz": archive("lib/server.jar")}
    package.sums.write_text(sums(files), encoding="ascii")
    folder = installed(package, tmp_path / "cache", delivering(files))
    assert (folder / "lib" / "server.jar").read_bytes() == b"hi"
    assert list(folder.glob("*.tar.gz")) == []


def test_an_archive_cannot_write_outside_its_folder(package: Package, tmp_path: Path) -> None:
    files = {"server.tar.gz": archive("../outside")}
    package.sums.write_text(sums(files), encoding="ascii")
    with pytest.raises(tarfile.OutsideDestinationError):
        installed(package, tmp_path / "cache", delivering(files))
    assert kept(tmp_path / "cache") == []


def test_a_list_is_what_sha256sum_prints(tmp_path: Path) -> None:
    delivering(FILES)(KAFKA, tmp_path)
    assert listed(tmp_path) == sums(FILES)
    verify(tmp_path, sums(FILES), "server.sha256")


@pytest.mark.parametrize(
    ("package", "count", "named"),
    [
        (KAFKA, 46, ["kafka_2.13-4.1.1.jar", "kafka-server-4.1.1.jar", "slf4j-simple-1.7.36.jar"]),
        (REGISTRY, 1, ["apicurio-registry-app-3.3.3-all.tar.gz"]),
    ],
    ids=["kafka", "registry"],
)
def test_the_lists_of_the_repository_are_whole(package: Package, count: int, named: list[str]) -> None:
    lines = package.sums.read_text(encoding="ascii").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+", line)] == []
    assert len(lines) == count
    assert {line.split()[1] for line in lines} >= set(named)
