"""Builds the site from the pages of the repository, in the folders where they are: links stay as they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mkdocs.commands.build import build
from mkdocs.config import load_config

from tools.site.notebook import as_markdown, cells_of

ROOT = Path(__file__).parents[2]
_CONFIGURATION = Path(__file__).with_name("mkdocs.yml")
# what pages link to, beside one another
_FOLDERS = ("docs", "benchmarks", "deploy", "proto")
_SUFFIXES = frozenset({".ipynb", ".md", ".png", ".svg", ".yml", ".json", ".proto"})
_FILES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
# by the question that a reader comes with; the decisions follow
SECTIONS: Mapping[str, Sequence[str]] = {
    "Start": ("README.md",),
    "How to": (
        "docs/operate.md",
        "docs/kafka.md",
        "docs/stores.md",
        "docs/databricks.md",
        "docs/cluster.md",
        "docs/sizing.md",
        "docs/python.md",
        "docs/decode.md",
        "docs/notebooks/first-look.md",
        "docs/schema-changes.md",
        "docs/quarantine.md",
        "docs/repair.md",
        "docs/forget.md",
        "docs/sessions.md",
        "docs/maintenance.md",
    ),
    "Reference": (
        "docs/reference/cli.md",
        "docs/reference/settings.md",
        "docs/reference/json.md",
        "docs/columns.md",
        "docs/status.md",
        "docs/observability.md",
        "docs/runbook.md",
        "docs/glossary.md",
        "CHANGELOG.md",
    ),
    "Explanation": ("ARCHITECTURE.md", "docs/record.md", "benchmarks/RESULTS.md", "CONTRIBUTING.md"),
}


def build_site(site: Path, root: Path = ROOT) -> None:
    """Build the site into a folder; a second call replaces it.

    Raises:
        mkdocs.exceptions.Abort: a link leads nowhere, or a page is in no section.
    """
    with TemporaryDirectory(prefix="demux-site-") as folder:
        for path in _staged(root):
            target = Path(folder, path.relative_to(root))
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".ipynb":
                target.with_suffix(".md").write_text(as_markdown(cells_of(path)), encoding="utf-8")
            elif path.suffix == ".md":
                # a notebook is a page of the site
                target.write_text(path.read_text(encoding="utf-8").replace(".ipynb)", ".md)"), encoding="utf-8")
            else:
                shutil.copyfile(path, target)
        navigation = [{name: list(pages)} for name, pages in SECTIONS.items()]
        names = ("README.md", *(path.name for path in decisions(root)))
        navigation.append({"Decisions": [f"docs/decisions/{name}" for name in names]})
        build(load_config(str(_CONFIGURATION), docs_dir=folder, site_dir=str(site), nav=navigation, strict=True))


def decisions(root: Path = ROOT) -> list[Path]:
    """Return the pages of the decisions, in order, without the list of them."""
    return sorted((root / "docs" / "decisions").glob("[0-9]*.md"))


def _staged(root: Path) -> Iterator[Path]:
    """Yield the files of the site."""
    yield from (root / name for name in _FILES)
    yield from sorted((root / "docs" / "examples").glob("*.py"))
    for folder in _FOLDERS:
        yield from (path for path in sorted((root / folder).rglob("*")) if path.suffix in _SUFFIXES)
