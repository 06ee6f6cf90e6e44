"""docs/runbook.md is what the code makes, leaves nothing out, and names only what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from demux.cli.app import COMMANDS, loaded
from demux.cli.commands.quarantine import REPLAYABLE
from demux.core.causes import Cause, Stage
from demux.core.errors import DemuxError, ExitCode
from demux.core.settings.loading.template import section_in
from demux.core.settings.settings import Settings
from demux.operations.reconcile.balance import LedgerFault
from tests.conftest import Golden
from tools.runbook.page import ADVICE, CONDITIONS, page
from tools.runbook.sentences import said_in

ROOT = Path(__file__).parents[4]
STAGES = ("demux", "producer", "bronze_ingest", "install_workflow", "deserializer")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for stage in STAGES
    for path in sorted((ROOT / stage).rglob("*.py"))
}
# without the sentences of the code, which have tests of their own
WRITTEN = page({})


def anchors(text: str) -> set[str]:
    """What links into a page may name: its headings, as GitHub writes them."""
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}


def settings_in(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """The dotted key of each setting, sections included."""
    for name, info in model.model_fields.items():
        yield before + name
        if (section := section_in(info)) is not None:
            yield from settings_in(section, f"{before}{name}.")


def commands() -> Iterator[str]:
    """The words of each command, without `demux`."""
    for name in COMMANDS:
        inner = getattr(loaded(name), "commands", {})
        yield from [f"{name} {each}" for each in inner] or [name]


def test_the_page_is_what_the_code_makes(golden: Golden) -> None:
    golden("../../docs/runbook.md", page(SOURCES))


def test_everything_has_its_advice_and_nothing_else_has_one() -> None:
    assert list(ADVICE["conditions"]) == [error.condition for error in CONDITIONS]
    assert list(ADVICE["causes"]) == [cause.value for cause in Cause]
    assert list(ADVICE["ledger"]) == [fault.name for fault in LedgerFault]
    assert list(ADVICE["exit_codes"]) == [code.name for code in ExitCode]
    stops = [stopped for advice in ADVICE["conditions"].values() for stopped in advice["stops"]]
    assert set(stops) == {"the command", "bronze", "a game", "an installer"}


def test_every_condition_is_raised_somewhere() -> None:
    assert {error.__name__ for error in CONDITIONS} - said_in(SOURCES, {e.__name__ for e in CONDITIONS}).keys() == set()


@pytest.mark.parametrize("error", CONDITIONS, ids=lambda error: error.condition)
def test_the_meaning_is_one_sentence_of_its_own(error: type[DemuxError]) -> None:
    first = (error.__doc__ or "").strip().splitlines()[0]
    assert first.endswith(".")
    assert error.__doc__ != DemuxError.__doc__


def test_a_replay_is_offered_for_the_causes_that_the_command_replays() -> None:
    assert {known["replay"] for known in ADVICE["causes"].values()} == {"helps", "seldom helps", "cannot help"}
    replayed = {Cause(cause) for cause, known in ADVICE["causes"].items() if known["replay"] != "cannot help"}
    silver = {Cause(cause) for cause, known in ADVICE["causes"].items() if Stage(known["stage"]) is Stage.SILVER}
    assert replayed == set(REPLAYABLE) == silver


def test_no_two_headings_are_alike_so_that_each_link_leads_to_its_own() -> None:
    heads = re.findall(r"^#+ (.*)$", WRITTEN, re.MULTILINE)
    assert len(heads) == len(set(heads)) > len(CONDITIONS) + len(Cause)


def test_every_link_leads_somewhere() -> None:
    for file, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", WRITTEN):
        target = (ROOT / "docs" / file).read_text("utf-8") if file else WRITTEN
        assert anchor in anchors(target), f"{file}#{anchor}"


def test_every_setting_that_the_page_names_is_one() -> None:
    known = set(settings_in(Settings))
    sections = {key.partition(".")[0] for key in known}
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?::[^`]*)?`", WRITTEN)) - {"registry.yml", "spark.log"}
    assert {key for key in named if key.partition(".")[0] in sections} - known == set()
    assert "run.retries" in named


def test_every_command_that_the_page_names_is_one() -> None:
    named = set(re.findall(r"`demux ([a-z ]+?)(?=`| [^a-z])", WRITTEN))
    assert named - set(commands()) == set()
    assert {"status", "quarantine replay"} <= named


def test_sentences_are_read_where_errors_are_made() -> None:
    source = """
_MORE = "Wait."
def f(a):
    remedy = "Try."
    if a:
        remedy = f"Call {a}."
    raise Broken("A was." if a else f"B {a!r} was.", remedy, a=a)
def g(failure):
    remedy = "Not meant."
    return Broken(failure.message, _MORE)
def h(failure):
    return Broken(*failure)
"""
    (said,) = said_in({"a.py": source}, {"Broken"}).values()
    assert [(each.messages, each.remedies) for each in said] == [
        (
            ("A was.", "B … was."),
            ("Try.", "Call …."),
        ),
        (("…",), ("Wait.",)),
        (("…",), ("…",)),
    ]
