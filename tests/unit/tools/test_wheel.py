"""What the wheel needs beside the libraries of Databricks runtimes, by the lists in tests/runtimes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tools.wheel import PYTHONS, RUNTIMES, SUPPORTED, conflicts, lowest, python_of, versions_of

ROOT = Path(__file__).parents[3]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def requirements(name: str) -> list[Requirement]:
    """The list of this name in pyproject.toml."""
    found = re.search(rf"^{name} = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [Requirement(line) for line in re.findall(r'^ +"(.+)",$', found[1], re.MULTILINE)]


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("17.3", ""),
        # protobuf 4.24 knows no editions, and ends the process on classes of ours
        ("16.4", "databricks-sdk filelock protobuf pyarrow pydantic tenacity typing-extensions"),
        (
            "15.4",
            "databricks-sdk filelock googleapis-common-protos numpy protobuf pyarrow pydantic requests tenacity "
            "typing-extensions",
        ),
        (
            "13.3",
            "databricks-sdk filelock googleapis-common-protos numpy protobuf pyarrow pydantic requests tenacity "
            "typing-extensions",
        ),
    ],
)
def test_the_bounds_allow_what_a_supported_runtime_has(runtime: str, expected: str) -> None:
    assert conflicts(requirements("dependencies"), versions_of(runtime)) == set(expected.split())
    assert (runtime in SUPPORTED) == (not expected)


def test_the_documentation_promises_these_runtimes_and_pythons() -> None:
    page = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| Runtime (\S+) LTS .*\| supported", page, re.MULTILINE)) == sorted(SUPPORTED)
    assert f"You need Python {PYTHONS[0]} to {PYTHONS[-1]}," in (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r'^requires-python = "(.+)"', PYPROJECT, re.MULTILINE)
    assert found is not None
    assert [version for version in PYTHONS if version in SpecifierSet(found[1])] == list(PYTHONS)
    assert {python_of(runtime) for runtime in SUPPORTED} <= set(PYTHONS)


def test_every_list_says_where_it_comes_from() -> None:
    for path in RUNTIMES.glob("*.txt"):
        head = path.read_text(encoding="utf-8").splitlines()[:4]
        assert all(line.startswith("# ") for line in head)
        assert "github.com/" in "".join(head)


def test_the_lowest_versions_are_those_of_the_oldest_runtime() -> None:
    found = lowest([Requirement("numpy>=1.26"), Requirement("typing_extensions>=4.12"), Requirement("ptars==0.0.25")])
    assert found == {"numpy": "2.1.3", "typing-extensions": "4.12.2"}


def test_no_dependency_of_a_task_is_an_extras_library() -> None:
    base = {one.name for one in requirements("dependencies")}
    assert base.isdisjoint({"confluent-kafka", "deltalake", "grpcio-tools", "pandas", "pyspark", "sqlglot"})
