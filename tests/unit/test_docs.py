"""README, ARCHITECTURE, CONTRIBUTING and docs: links that lead somewhere, sizes, the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from demux.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PACKAGES = ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer")
MODULES = {
    path.name
    for folder in (*PACKAGES, "tests", "tools", "benchmarks", "docs/examples")
    for path in (ROOT / folder).rglob("*.py")
}
# most lines of pages that everybody reads
LONGEST = {"README.md": 150, "CONTRIBUTING.md": 80, "ARCHITECTURE.md": 120}


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)|(?:src|srcset)=\"([^\"]+)\"", text)
    for file, anchor, source in links:
        target = (page.parent / (file or source)).resolve() if file or source else page
        assert target.exists(), f"{page.name}: {file or source}"
        if anchor:
            assert anchor in anchors(target.read_text("utf-8")), f"{page.name}: {file}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    if page.name != "CHANGELOG.md":
        named = set(re.findall(r"`(?:[\w/-]*/)?([\w-]+\.py)`", page.read_text("utf-8")))
        assert sorted(named - MODULES) == []


def test_every_module_that_a_docstring_or_a_comment_names_exists() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"`(?:[\w/-]*/)?([\w-]+\.py)`", path.read_text("utf-8"))
    }
    assert sorted(one for one in named if one[1] not in MODULES) == []


@pytest.mark.parametrize("name", LONGEST)
def test_a_page_that_everybody_reads_is_short(name: str) -> None:
    assert len((ROOT / name).read_text("utf-8").splitlines()) <= LONGEST[name]


def test_the_readme_links_every_page_of_a_task() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)", readme))
    # these are linked from where they are needed
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - {
        "docs/glossary.md",
        "docs/sessions.md",
        "docs/record.md",
    }
    assert linked == pages


def test_the_page_of_stores_says_of_each_command_where_it_works() -> None:
    _, _, page = (ROOT / "docs" / "stores.md").read_text("utf-8").partition("## What works where")
    table = re.findall(r"^\| (`[^|]+`) \|", page.partition("\n## ")[0], re.MULTILINE)
    named = [command for row in table for command in re.findall(r"`([a-z ]+)`", row)]
    without_tables = set(re.findall(r"`([a-z]+)`", page.partition(" touch no tables.")[0].rpartition("\n\n")[2]))
    assert len(named) == len(set(named))
    assert {command.split()[0] for command in named} | without_tables == COMMANDS.keys()
    assert without_tables == {"init", "size", "grants", "export", "prepare"}


def test_the_glossary_has_at_most_40_terms_in_order() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)
    terms = [term for term in rows if term not in ("term", "---")]
    assert terms == sorted(terms)
    assert 20 < len(set(terms)) == len(terms) <= 40


def test_each_function_on_the_path_of_a_record_is_there() -> None:
    text = (ROOT / "docs" / "record.md").read_text("utf-8")
    named = re.findall(r"`((?:demux|bronze_ingest|install_workflow|deserializer)\.[\w.]+)`", text)
    assert len(named) > 20
    for name in named:
        module, found = name, ""
        while not (ROOT / (module.replace(".", "/") + ".py")).is_file():
            module, _, last = module.rpartition(".")
            assert module, name
            found = f"{last}.{found}".rstrip(".")
        source = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text("utf-8"))
        body: Sequence[ast.stmt] = source.body
        for part in found.split("."):
            (node,) = (each for each in body if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == part)
            body = node.body


def test_each_path_that_the_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    paths = re.findall(
        r"`((?:demux|bronze_ingest|install_workflow|deserializer|tests|tools|benchmarks)/[\w./{},-]*)`", text
    )
    assert len(paths) > 25
    for path in paths:
        before, brace, names = path.partition("{")
        every = [before + name for name in names.rstrip("}").split(",")] if brace else [path]
        assert [each for each in every if not (ROOT / each).exists()] == [], path
