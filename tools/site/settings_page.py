"""The text of docs/reference/settings.md: each setting with its default and what it does. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from demux.core.settings.loading.template import PREFIX, description, section_in, yaml_value
from demux.core.settings.settings import Settings
from tools.site.cli_page import cell

_HEAD = f"""\
# Settings
Every setting; `make golden` makes this page from the code (`tools/site/`), and `demux init` writes a file with them.
A setting of a section has the section's name before it: `run.every` is `every:` below `run:` in the file,
`--set run.every=5m` on the command line, and `{PREFIX}RUN__EVERY` in the environment. The command line counts before
the environment, and that before the file.
"""


def settings_page() -> str:
    """Return the page."""
    plain = [(name, info) for name, info in Settings.model_fields.items() if section_in(info) is None]
    parts = [_HEAD, "## General", *_table([_row(name, info) for name, info in plain])]
    for name, info in Settings.model_fields.items():
        section = section_in(info)
        if section is not None:
            parts += ["", f"## {name}", str(info.description), "", *_table(list(_rows(section, f"{name}.")))]
    return "\n".join(parts)


def _table(rows: list[str]) -> list[str]:
    return ["| setting | default | what it does |", "| --- | --- | --- |", *rows]


def _rows(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        section = section_in(info)
        if section is None:
            yield _row(f"{before}{name}", info)
        else:
            yield from _rows(section, f"{before}{name}.")


def _row(name: str, info: FieldInfo) -> str:
    shown = "" if info.default is None else f"`{yaml_value(info.default)}`"
    return f"| `{name}` | {shown} | {cell(description(info))} |"
