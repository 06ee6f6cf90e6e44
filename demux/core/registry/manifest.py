"""The manifest of a folder registry, `registry.yml`: text to entries, entries to text. Pure."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from demux.core.errors import SchemaInvalid

_FRESH = """\
# Every schema of this registry: the id that payloads name it by, its subject and version, and its file in this folder.
# An id is never given twice, so `next_id` only grows.
next_id: 1
schemas: []
"""
_REQUIRED = {"id": int, "subject": str, "version": int, "file": str}
_OPTIONAL = {"import_root": str, "message": str, "made_by": str}
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One schema of the manifest.

    Attributes:
        schema_id: 1 … 2^31-1; entries of several subjects may share it where they have the same text.
        version: at least 1, unique in the subject.
        file: the `.proto` file, relative to the folder.
        import_root: where its imports start, relative to the folder; empty = the folder itself.
        line: its line in the manifest, from 1; 0 for an entry not written yet.
    """

    schema_id: int
    subject: str
    version: int
    file: str
    import_root: str = ""
    message: str | None = None
    made_by: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest: its entries in order, and the first unused id."""

    entries: tuple[ManifestEntry, ...]
    next_id: int


def read_manifest(text: str | None, name: str) -> Manifest:
    """Parse the manifest; no text at all is a registry without schemas.

    Raises:
        SchemaInvalid: it is not YAML, or has mistakes; the sentence lists all of them by line.
    """
    document = _document(_FRESH if text is None else text, name)
    mistakes: list[str] = []
    entries = tuple(_entries(document, mistakes))
    mistakes += _duplicates(entries)
    next_id = document.get("next_id", 1)
    if not _is(next_id, int) or next_id < 1:
        mistakes.append(f"line {document.lc.value('next_id')[0] + 1}: next_id is not a number from 1 on")
    if mistakes:
        raise _invalid(name, "; ".join(mistakes))
    return Manifest(entries, max([next_id, *(entry.schema_id + 1 for entry in entries)]))


def with_entries(text: str | None, name: str, entries: Iterable[ManifestEntry], next_id: int) -> str:
    """Return the manifest's text with these entries at its end; comments and order are kept."""
    document = _document(_FRESH if text is None else text, name)
    # a new list where there was none or `[]`, so that entries are on lines of their own
    document["schemas"] = document["schemas"] or []
    document["schemas"].extend(_mapping(entry) for entry in entries)
    return _text(document, next_id)


def without_entries(text: str, name: str, entries: Iterable[ManifestEntry], next_id: int) -> str:
    """Return the manifest's text without these entries; their ids stay taken."""
    document = _document(text, name)
    gone = {(entry.subject, entry.version) for entry in entries}
    schemas = document.get("schemas") or []
    for at in reversed(range(len(schemas))):
        if (schemas[at]["subject"], schemas[at]["version"]) in gone:
            del schemas[at]
    return _text(document, next_id)


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    return yaml


def _document(text: str, name: str) -> CommentedMap:
    try:
        document = _yaml().load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _invalid(name, f"line {line}: {error.problem or error.context}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise _invalid(name, f"it is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(document, CommentedMap) or not isinstance(document.get("schemas", 0), (list, type(None))):
        raise _invalid(name, "line 1: it has no list `schemas`")
    return document


def _entries(document: CommentedMap, mistakes: list[str]) -> Iterator[ManifestEntry]:
    schemas = document["schemas"] or CommentedSeq()
    for at, item in enumerate(schemas):
        line = _line_of(schemas, at)
        if not isinstance(item, CommentedMap):
            mistakes.append(f"line {line}: the entry is not a mapping")
            continue
        found = [f"line {line}: {mistake}" for mistake in _entry_mistakes(item)]
        mistakes += found
        if not found:
            yield ManifestEntry(
                int(item["id"]),
                str(item["subject"]),
                int(item["version"]),
                str(item["file"]),
                str(item.get("import_root", "")),
                None if item.get("message") is None else str(item["message"]),
                None if item.get("made_by") is None else str(item["made_by"]),
                line,
            )


def _line_of(schemas: CommentedSeq, at: int) -> int:
    # a tagged list has no places for its items, only its own
    item = schemas.lc.item(at) if schemas.lc.data else None
    return int(item[0] if item else schemas.lc.line) + 1


def _entry_mistakes(item: Mapping[Any, Any]) -> Iterator[str]:
    for key, kind in _REQUIRED.items():
        if key not in item:
            yield f"{key} is missing"
        elif not _is(item[key], kind) or item[key] == "":
            yield f"{key} is not a {'number' if kind is int else 'text'}"
    for key, kind in _OPTIONAL.items():
        if item.get(key) is not None and not _is(item[key], kind):
            yield f"{key} is not a text"
    if unknown := [str(key) for key in item if key not in _REQUIRED and key not in _OPTIONAL]:
        yield f"{unknown[0]!r} is none of {', '.join([*_REQUIRED, *_OPTIONAL])}"
    for key in ("id", "version"):
        if _is(item.get(key), int) and not 1 <= item[key] <= _LARGEST:
            yield f"{key} {item[key]} is not from 1 to {_LARGEST}"


def _duplicates(entries: Iterable[ManifestEntry]) -> Iterator[str]:
    ids: dict[tuple[int, str], int] = {}
    versions: dict[tuple[str, int], int] = {}
    for entry in entries:
        if (first := ids.setdefault((entry.schema_id, entry.subject), entry.line)) != entry.line:
            yield f"line {entry.line}: id {entry.schema_id} of {entry.subject!r} is on line {first} already"
        if (first := versions.setdefault((entry.subject, entry.version), entry.line)) != entry.line:
            yield f"line {entry.line}: version {entry.version} of {entry.subject!r} is on line {first} already"


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _mapping(entry: ManifestEntry) -> CommentedMap:
    pairs: dict[str, int | str | None] = {
        "id": entry.schema_id,
        "subject": entry.subject,
        "version": entry.version,
        "file": entry.file,
        "import_root": entry.import_root or None,
        "message": entry.message,
        "made_by": entry.made_by,
    }
    return CommentedMap((key, _scalar(value)) for key, value in pairs.items() if value is not None)


def _scalar(value: int | str) -> int | str:
    # only double quotes keep control characters and line ends as they are
    return DoubleQuotedScalarString(value) if isinstance(value, str) and not value.isprintable() else value


def _text(document: CommentedMap, next_id: int) -> str:
    if "next_id" in document:
        document["next_id"] = next_id
    else:
        document.insert(0, "next_id", next_id)
    written = io.StringIO()
    _yaml().dump(document, written)
    return written.getvalue()


def _invalid(name: str, mistakes: str) -> SchemaInvalid:
    return SchemaInvalid(f"{name} has mistakes: {mistakes}.", "Correct the lines named.", file=name, mistakes=mistakes)
