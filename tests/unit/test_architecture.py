"""The rules of the layout: who may import whom, how long a file may be, and what a module is never called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAGES = frozenset({"producer", "bronze_ingest", "install_workflow", "deserializer"})
PACKAGES = ("demux", *sorted(STAGES))
MAX_LINES = 400
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "manager"})

MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def relative(path: Path) -> str:
    """The path below the root of the project, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def imported_packages(source: str) -> Iterator[str]:
    """Each top-level package that the source imports anywhere, functions and type checking included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]


def forbidden_stages(file: str) -> frozenset[str]:
    """The stages that a file of the packages may not import."""
    package = file.partition("/")[0]
    if package in STAGES:
        return STAGES - {package}
    # the stages are put together in the pipeline, and the command line is above it
    return frozenset() if file.startswith(("demux/pipeline/", "demux/cli/")) else STAGES


def effect_files() -> list[str]:
    """The patterns of the files that may have effects, one name each."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    patterns = re.findall(r'^"([^"]+)" = \["TID251"\]', text, re.MULTILINE)
    return [name for pattern in patterns for name in expanded(pattern)]


def expanded(pattern: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    return [found[1] + name + found[3] for name in found[2].split(",")] if found else [pattern]


def test_there_are_modules_to_look_at() -> None:
    assert "demux/core/errors.py" in [relative(path) for path in MODULES]


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("producer/run.py", {"bronze_ingest", "install_workflow", "deserializer"}),
        ("demux/core/names.py", {"producer", "bronze_ingest", "install_workflow", "deserializer"}),
        ("demux/pipeline/round.py", set()),
        ("demux/cli/main.py", set()),
    ],
)
def test_a_file_may_import_its_own_stage_and_only_what_is_above_them_imports_all(file: str, stages: set[str]) -> None:
    assert forbidden_stages(file) == stages


def test_imports_inside_functions_count() -> None:
    source = "import a.b\ndef f():\n    from producer.run import run\n    from . import sibling\n"
    assert sorted(imported_packages(source)) == ["a", "producer"]


def test_stages_import_demux_and_never_each_other() -> None:
    imported = {path: set(imported_packages(path.read_text(encoding="utf-8"))) for path in MODULES}
    forbidden = {relative(path): imported[path] & forbidden_stages(relative(path)) for path in MODULES}
    assert {file: stages for file, stages in forbidden.items() if stages} == {}


def test_no_file_is_longer_than_the_limit() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {file: length for file, length in lines.items() if length > MAX_LINES} == {}


def test_every_module_has_a_name_that_says_something() -> None:
    parts = {relative(path): path.relative_to(ROOT).with_suffix("").parts for path in MODULES}
    assert [file for file, names in parts.items() if not EMPTY_NAMES.isdisjoint(names)] == []


def test_every_effect_file_that_the_linter_knows_is_there() -> None:
    names = effect_files()
    assert "demux/core/streaming/session.py" in names
    assert [name for name in names if not list(ROOT.glob(name))] == []


def test_proto_is_never_a_python_package() -> None:
    # `proto` is the import name of proto-plus.
    assert list((ROOT / "proto").rglob("*.py")) == []
