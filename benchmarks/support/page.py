"""RESULTS.md, in sections: each has its own line of machine and date, and is replaced without touching the others."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

import pyspark

RESULTS = Path(__file__).parents[1] / "RESULTS.md"
_HEADING = "## "
_NEW = """# Results

Machines differ and are noisy: compare the ratios, not the seconds. Each section says when it was measured, and by which
command.
"""


def with_section(page: str, title: str, lines: Sequence[str]) -> str:
    """Return the page with this section in place of the one with its title; at the end where there was none."""
    new = "\n".join([f"{_HEADING}{title}", *lines]).rstrip() + "\n"
    parts = _parts(page)
    headings = [part.partition("\n")[0] for part in parts]
    if f"{_HEADING}{title}" in headings:
        parts[headings.index(f"{_HEADING}{title}")] = new
    else:
        parts.append(new)
    return "\n".join(part.rstrip() + "\n" for part in parts if part.strip())


def made(command: str, day: date, cores: int | None, details: str = "") -> str:
    """Return the sentence about what was run, when, and on what."""
    machine = f"{cores} cores, {platform.system()}, Python {platform.python_version()}, Spark {pyspark.__version__}"
    return f"Made by `{command}` on {day:%Y-%m-%d}: {machine}{'; ' if details else ''}{details}."


def write_section(title: str, command: str, details: str, lines: Sequence[str], file: Path = RESULTS) -> None:
    """Replace a section of the page and print it."""
    first = made(command, datetime.now(timezone.utc).date(), os.cpu_count(), details)
    whole = [first, "", *lines]
    page = file.read_text(encoding="utf-8") if file.exists() else _NEW
    file.write_text(with_section(page, title, whole), encoding="utf-8")
    print("\n".join([f"\n{_HEADING}{title}", *whole, f"written to {file}"]), flush=True)


def _parts(page: str) -> list[str]:
    """Return the text before the first section, and the sections, each with its heading."""
    parts = [""]
    for line in page.splitlines(keepends=True):
        if line.startswith(_HEADING):
            parts.append("")
        parts[-1] += line
    return parts
