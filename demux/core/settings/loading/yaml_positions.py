"""YAML as texts, with the line of each key and every slip; pure.

Nothing is guessed about types: `2048`, `no` and `1e3` stay the texts they are, and only an unquoted null is None.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

Key = tuple[str | int, ...]

# settings need 3; a bound keeps a hostile file from using up the stack
_MAX_DEPTH = 8
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class YamlMistake(NamedTuple):
    """Something wrong with the YAML itself; the key is empty when no key is to blame."""

    line: int
    key: Key
    reason: str


class Document(NamedTuple):
    """One YAML document.

    Attributes:
        value: dict, list, str or None, and the same inside; None for an empty document and for one that cannot be read.
        lines: where each key and list item is, from 1.
        slips: what is wrong, in the order of the text.
    """

    value: object
    lines: Mapping[Key, int]
    slips: tuple[YamlMistake, ...]


def text_of(values: Mapping[str, object]) -> str:
    """Return the YAML text of settings."""
    yaml, written = YAML(), io.StringIO()
    yaml.width = 4096
    yaml.dump(values, written)
    return written.getvalue()


def document_of(text: str) -> Document:
    """The document in the text. Of a key given twice the first value counts; aliases and second documents are slips."""
    reading = _YamlEvents(iter(YAML(typ="safe", pure=True).parse(text)))
    try:
        return Document(reading.document(), reading.lines, tuple(reading.slips))
    except _UnreadableYaml as error:
        line, reason = error.line, str(error)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        reason = ", ".join(str(part) for part in (error.context, error.problem) if part)
    except ReaderError as error:
        line, reason = text.count("\n", 0, error.position) + 1, f"unprintable character U+{error.character:04X}"
    except (YAMLError, ValueError) as error:
        line, reason = 1, str(error)
    return Document(None, {}, (*reading.slips, YamlMistake(line, (), f"not valid YAML: {reason}")))


class _UnreadableYaml(Exception):
    """Stops the reading at a place that nothing sensible can follow."""

    def __init__(self, event: Event, reason: str) -> None:
        super().__init__(reason)
        self.line = _line(event)


@dataclass(slots=True)
class _YamlEvents:
    """The remaining YAML events, and the lines and mistakes found so far."""

    events: Iterator[Event]
    lines: dict[Key, int] = field(default_factory=dict)
    slips: list[YamlMistake] = field(default_factory=list)

    def document(self) -> object:
        value: object = None
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _UnreadableYaml(event, "a second document starts here; only one is allowed")
                value = self.value(next(self.events), ())
        return value

    def value(self, event: Event, key: Key) -> object:
        if len(key) > _MAX_DEPTH:
            raise _UnreadableYaml(event, "nested too deeply")
        match event:
            case ScalarEvent():
                return None if not event.style and event.value in _NULLS else _text(event)
            case MappingStartEvent():
                return self.mapping(key)
            case SequenceStartEvent():
                return self.sequence(key)
            case AliasEvent():
                raise _UnreadableYaml(event, "an alias is not supported here; write the value itself")
            case _:
                raise _UnreadableYaml(event, "unexpected content")

    def mapping(self, key: Key) -> dict[str, object]:
        mapping: dict[str, object] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise _UnreadableYaml(event, "a key must be plain text")
            name = _text(event)
            below = (*key, name)
            if name in mapping:
                self.slips.append(YamlMistake(_line(event), below, f"given twice; first in line {self.lines[below]}"))
            self.lines.setdefault(below, _line(event))
            value = self.value(next(self.events), below)
            mapping.setdefault(name, value)
        return mapping

    def sequence(self, key: Key) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            below = (*key, len(items))
            self.lines.setdefault(below, _line(event))
            items.append(self.value(event, below))
        return items


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1


def _text(event: ScalarEvent) -> str:
    text = str(event.value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _UnreadableYaml(event, "half of a surrogate pair; write the character itself")
    return text
