"""The text of docs/runbook.md: a template, filled with the errors, causes and exit codes that there are, and advice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from ruamel.yaml import YAML

from demux.core.errors import DemuxError, ErrorKind, ExitCode
from demux.operations.reconcile.balance import MEANING
from tools.runbook.sentences import OPEN, said_in

_FOLDER = Path(__file__).parent
# conditions: stops, by_itself (what the tool did, what became of the records), to_do; causes: stage, replay, meaning,
# to_do; ledger and exit_codes: a sentence each
ADVICE: Mapping[str, Mapping[str, Any]] = YAML(typ="safe").load(_FOLDER / "advice.yml")

# tools and tests have errors of their own, which nobody on call meets
_OURS = (error for error in DemuxError.__subclasses__() if error.__module__ == DemuxError.__module__)
CONDITIONS = tuple(sorted(_OURS, key=lambda error: error.condition))


def page(sources: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        sources: the text of each file of the product, by path, of which the sentences are read.
    """
    sentences = said_in(sources, {error.__name__ for error in CONDITIONS})

    def rows(error: type[DemuxError]) -> list[tuple[str, str]]:
        found = [
            ("<br>or: ".join(each.messages), "<br>or: ".join(each.remedies))
            for each in sentences.get(error.__name__, ())
        ]
        # where all of it is made at run time, there is nothing to look for
        return [row for row in found if any(cell.strip(f"{OPEN}:. ") for cell in row)]

    # a page of Markdown: nothing is to be escaped for HTML
    templates = Environment(loader=FileSystemLoader(_FOLDER), undefined=StrictUndefined, autoescape=False)
    filters: Mapping[str, Callable[..., Any]] = {
        "cell": lambda text: text.replace("|", "\\|"),
        "link": lambda word: f"[`{word}`](#{word.lower()})",
        "paragraphs": _paragraphs,
        "passes": lambda error: "yes" if error.kind is ErrorKind.TRANSIENT else "no",
        "sentences": rows,
        "stops": _stops,
    }
    templates.filters.update(filters)
    template = templates.get_template("runbook.md.j2")
    return template.render(advice=ADVICE, conditions=CONDITIONS, codes=tuple(ExitCode), faults=MEANING).rstrip()


def _paragraphs(error: type[DemuxError]) -> list[str]:
    """Return the paragraphs of the class's docstring, the first of which is one sentence."""
    return [" ".join(text.split()) for text in inspect.cleandoc(error.__doc__ or "").split("\n\n")]


def _stops(error: type[DemuxError]) -> str:
    *others, last = ADVICE["conditions"][error.condition]["stops"]
    return f"{', '.join(others)} or {last}" if others else last
