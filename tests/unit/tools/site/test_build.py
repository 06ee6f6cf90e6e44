"""The site is built from all pages, each link of it leads somewhere, and it fetches nothing from other hosts."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mkdocs.exceptions import Abort

from tools.site.build import ROOT, SECTIONS, build_site, decisions
from tools.site.notebook import NOTEBOOKS


class _Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        elif tag in {"script", "img", "link"}:
            self.sources.append(str(found.get("src") or found.get("href") or ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


@pytest.mark.thorough
def test_each_link_leads_to_a_page_and_an_anchor(site: Path) -> None:
    pages = {page: _Links(page) for page in site.rglob("*.html")}
    wrong = []
    for page, found in pages.items():
        for link in found.links:
            if re.match(r"[a-z]+:", link) or page.name == "404.html":
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and anchor not in pages[target].anchors):
                wrong.append((page.relative_to(site).as_posix(), link))
    assert (len(pages) > 50, wrong) == (True, [])


@pytest.mark.thorough
def test_nothing_comes_from_another_host(site: Path) -> None:
    sources = {source for page in site.rglob("*.html") for source in _Links(page).sources}
    assert [source for source in sources if re.match(r"(https?:)?//", source)] == []


def test_each_page_is_in_one_section() -> None:
    listed = [page for pages in SECTIONS.values() for page in pages]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    notebooks = [file.with_suffix(".md") for file in NOTEBOOKS.glob("*.ipynb")]
    assert sorted(listed) == sorted(
        [*(page.relative_to(ROOT).as_posix() for page in (*pages, *notebooks)), "benchmarks/RESULTS.md"],
    )
    assert len(decisions()) > 30


@pytest.mark.thorough
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    for folder in ("docs", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copyfile(page, tmp_path / page.name)
    (tmp_path / "docs" / "stores.md").write_text("# Stores\n[no page](nowhere.md)\n", encoding="utf-8")
    with pytest.raises(Abort):
        build_site(tmp_path / "built", tmp_path)
