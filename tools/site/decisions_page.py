"""The text of docs/decisions/README.md: a list of all decisions. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_HEAD = """\
# Decisions
What was decided that is hard to undo, what else was tried, and what it would cost to decide otherwise. `make golden`
makes this list from the pages (`tools/site/`).
"""


def decisions_page(pages: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        pages: the text of each decision by file name.
    """
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in sorted(pages.items())}
    return "\n".join((_HEAD, *(f"* [{title}]({name})" for name, title in titles.items())))
