"""The imports of a `.proto` text, and which import paths are safe to become files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from demux.core.registry.protocol import ImportedFile, NewSchema

_TOKENS = re.compile(
    r"""//[^\n]* | /\*.*?\*/
    | \bimport\s*(?:\b(?:public|weak|option)\s*)?(?P<quote>["'])(?P<path>[^"'\n]*)(?P=quote)\s*;
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.VERBOSE | re.DOTALL,
)


def imports_of(text: str) -> tuple[str, ...]:
    """Return the import paths of a `.proto` text in order; comments and string literals are passed over."""
    return tuple(match["path"] for match in _TOKENS.finditer(text) if match["path"])


def transitive_imports(text: str, read: Callable[[str], str | None]) -> tuple[ImportedFile, ...]:
    """Return every file that the text needs, in order of path.

    Args:
        read: gives the text behind an import path, or None where there is no such file (protoc has the last word).
    """
    found: dict[str, str] = {}
    waiting = list(imports_of(text))
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        imported = read(path)
        if imported is None:
            continue
        found[path] = imported
        further = [name for name in imports_of(imported) if name not in seen]
        seen.update(further)
        waiting.extend(further)
    return tuple(ImportedFile(path, found[path]) for path in sorted(found))


def path_mistake(path: str) -> str | None:
    """Return why this import path must not become a file name, or None when it may."""
    if not path.isprintable() or "\\" in path:
        return "has control characters or backslashes"
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is absolute or has empty, `.` or `..` parts"
    if not path.endswith(".proto"):
        return "does not end in `.proto`"
    if any(len(part.encode()) > 200 for part in parts) or len(path) > 1000:
        return "is too long"
    return None


def paths_mistake(paths: Iterable[str]) -> str | None:
    """Return why these import paths cannot be files side by side, or None when they can."""
    together = list(paths)
    for path in together:
        if mistake := path_mistake(path):
            return f"the import path {path!r} {mistake}"
    taken = set(together)
    if len(taken) < len(together):
        return "one import path is there twice"
    folders = {"/".join(path.split("/")[:end]) for path in together for end in range(1, path.count("/") + 1)}
    if clash := sorted(folders & taken):
        return f"the import path {clash[0]!r} is a file and a folder"
    return None


def needed_imports(schema: NewSchema) -> tuple[ImportedFile, ...]:
    """Return those of the schema's references that its text needs, directly or not, in order of path."""
    texts = {reference.path: reference.text for reference in schema.references}
    return transitive_imports(schema.text, texts.get)


def direct_imports(text: str, references: Iterable[ImportedFile]) -> tuple[ImportedFile, ...]:
    """Return those of the references that the text itself imports, in its order."""
    by_path = {reference.path: reference for reference in references}
    return tuple(by_path[path] for path in dict.fromkeys(imports_of(text)) if path in by_path)


def schema_mistake(schema: NewSchema) -> str | None:
    """Return why the schema cannot be kept under its subject and paths, or None when it can."""
    if not schema.subject:
        return "the subject is empty"
    texts = [schema.subject, schema.message or "", schema.text, *(reference.text for reference in schema.references)]
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        return "it holds half a surrogate pair, which UTF-8 cannot write"
    return paths_mistake([schema.path, *(reference.path for reference in schema.references)])
