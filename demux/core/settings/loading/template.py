"""The text of a settings file with every setting, made from the settings' own descriptions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from demux.core.settings.settings import Settings
from demux.core.settings.types import Section, is_class_of

PREFIX = "DEMUX_"


def template() -> str:
    """The text of a `demux.yml` with every setting, its description and its default."""
    head = (
        "Settings of Protobuf demux. Every line is optional; the values here are the defaults. The environment "
        f"comes before this file: {PREFIX}ROOT sets root, {PREFIX}GAMES__LIMIT sets limit under games. Options of "
        "the command line come before both."
    )
    return "\n".join((*_comment(head, ""), *_section_lines(Settings, ""))) + "\n"


def _section_lines(model: type[BaseModel], indent: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        if not indent:
            yield ""
        yield from _comment(description(info), indent)
        if section := section_in(info):
            yield f"{indent}{name}:"
            yield from _section_lines(section, indent + "  ")
        elif info.default is None:
            yield f"{indent}# {name}:"
        else:
            yield f"{indent}{name}: {yaml_value(info.default)}"


def _comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}# "
    return textwrap.wrap(
        text, 100, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False, break_long_words=False
    )


def description(info: FieldInfo) -> str:
    """Return the description of a setting, with the values that it takes."""
    return f"{info.description}{_choices(info)}"


def _choices(info: FieldInfo) -> str:
    for kind in (info.annotation, *get_args(info.annotation)):
        if is_class_of(kind, Enum):
            return f" One of: {', '.join(member.value for member in kind)}."
    return ""


def yaml_value(value: object) -> str:
    """Return a default as a settings file has it."""
    match value:
        case Enum():
            return str(value.value)
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(yaml_value(item) for item in value)}]"
        case Mapping():
            return "{" + ", ".join(f"{yaml_value(key)}: {yaml_value(item)}" for key, item in value.items()) + "}"
        case str() if not re.fullmatch(r"[A-Za-z0-9][\w./-]*", value):
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def section_in(info: FieldInfo) -> type[Section] | None:
    """Return the section that a field holds, None for a plain value."""
    kind = info.annotation
    return kind if is_class_of(kind, Section) else None
