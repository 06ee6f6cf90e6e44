"""A schema registry that is a folder of `.proto` files and a manifest, `registry.yml`; here or in an object store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from demux.core.errors import DemuxError, RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.core.names import game_key
from demux.core.registry.imports import needed_imports, path_mistake, schema_mistake, transitive_imports
from demux.core.registry.manifest import Manifest, ManifestEntry, read_manifest, with_entries, without_entries
from demux.core.registry.protocol import ImportedFile, NewSchema, RegisteredSchema, no_guids
from demux.core.storage.files import Storage
from demux.core.storage.location import locate

MANIFEST = "registry.yml"
# in a store a request costs tens of milliseconds: so long, what was read is not asked for again
_FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class _ReadManifest:
    """The manifest as it was read.

    Attributes:
        at: when it was read, on the clock that only grows.
    """

    tag: str | None
    text: str
    manifest: Manifest
    at: float


class FolderRegistry:
    """A registry in a folder. Reads see every change of a folder of this machine at once, of one in a store after 1 s.

    Args:
        folder: a path or URI: where `registry.yml` and the `.proto` files are.
    """

    def __init__(self, folder: str | Path, made_by: str | None = None, storage: Storage | None = None) -> None:
        self._storage = storage or Storage()
        self._folder = str(folder)
        # links are only there
        self._here = Path(locate(self._folder).key) if self._storage.is_folder(self._folder) else None
        self._made_by = made_by
        self._seen: _ReadManifest | None = None

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id with all its subjects; a mistake in another schema's file does not matter.

        Raises:
            SchemaInvalid: as of every registry, and where entries give the id to different texts.
        """
        entries = self._entries(schema_id)
        if not entries:
            raise SchemaUnknown(
                f"The registry in {self._folder} has no schema {schema_id}.",
                f"Add the schema to {MANIFEST}, then replay the quarantine.",
                schema_id=schema_id,
                folder=self._folder,
            )
        first, *others = (self._load(entry) for entry in entries)
        for other, entry in zip(others, entries[1:], strict=True):
            if (other.text, other.references) != (first.text, first.references):
                raise _invalid(
                    f"{self._name} line {entry.line}: id {schema_id} has another text on line {entries[0].line}.",
                    file=self._name,
                    line=entry.line,
                )
        return replace(first, others=tuple(use for other in others for use in other.uses))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Raise `SchemaUnknown`: a folder gives no GUIDs."""
        raise no_guids(f"in {self._folder}", guid)

    def compatibility(self, subject: str) -> str | None:
        """Return None: a folder checks nothing; `demux schemas check` does."""
        return None

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return the subject's schemas in order of version; none for an unknown subject."""
        return tuple(self._load(entry) for entry in _of_subject(self._recent().manifest, subject))

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects in alphabetical order."""
        return tuple(sorted({entry.subject for entry in self._recent().manifest.entries}))

    def register(
        self, subject: str, text: str, path: str, references: tuple[ImportedFile, ...], message: str | None = None
    ) -> int:
        """Return the id of this content under this subject, registered now if it was not; a second call is safe.

        Writes the files under a folder of their own, then replaces the manifest in one step; where another process
        was faster with that, it looks again.
        """
        return self.register_all([NewSchema(subject, text, path, references, message)])[0]

    def register_all(self, schemas: Sequence[NewSchema]) -> tuple[int, ...]:
        """Return one id per schema, in the same order; the manifest is replaced once."""
        for schema in schemas:
            if mistake := schema_mistake(schema):
                raise _invalid(f"The schema of {schema.subject!r} cannot be kept: {mistake}.", subject=schema.subject)
        while True:
            seen = self._read(missing_is_empty=True)
            manifest, ids = seen.manifest, []
            for schema in schemas:
                known = self._known(manifest, schema)
                if known is None:
                    known = self._write(manifest, schema)
                    manifest = Manifest((*manifest.entries, known), known.schema_id + 1)
                ids.append(known.schema_id)
            added = manifest.entries[len(seen.manifest.entries) :]
            if not added or self._replace(seen, with_entries(seen.text or None, self._name, added, manifest.next_id)):
                return tuple(ids)

    def remove(self, *, made_by: str) -> tuple[int, ...]:
        """Remove exactly the entries with this mark, and the files that only they need; return their ids.

        A second call finds nothing. Entries and files of others stay; so do the ids, which are not given again.
        """
        while True:
            seen = self._read(missing_is_empty=True)
            gone = [entry for entry in seen.manifest.entries if entry.made_by == made_by]
            if not gone:
                return ()
            kept = [entry for entry in seen.manifest.entries if entry.made_by != made_by]
            files = self._files(gone) - self._files(kept)
            if self._replace(seen, without_entries(seen.text, self._name, gone, seen.manifest.next_id)):
                self._delete(files)
                return tuple(sorted({entry.schema_id for entry in gone}))

    @property
    def _name(self) -> str:
        return f"{self._folder}/{MANIFEST}"

    def _entries(self, schema_id: int) -> list[ManifestEntry]:
        def found() -> list[ManifestEntry]:
            return [entry for entry in self._recent().manifest.entries if entry.schema_id == schema_id]

        if entries := found():
            return entries
        # it may be new
        self._seen = None
        return found()

    def _recent(self) -> _ReadManifest:
        if self._here is None and self._seen is not None and time.monotonic() - self._seen.at < _FRESH_S:
            return self._seen
        return self._read()

    def _read(self, missing_is_empty: bool = False) -> _ReadManifest:
        with _folder_errors(self._name):
            try:
                found = self._storage.read_tagged(self._name)
            except FileNotFoundError:
                if missing_is_empty:
                    return _ReadManifest(None, "", read_manifest(None, self._name), time.monotonic())
                raise
        if self._seen is not None and self._seen.tag == found.tag:
            self._seen = replace(self._seen, at=time.monotonic())
            return self._seen
        try:
            text = found.data.decode()
        except UnicodeDecodeError as error:
            raise _invalid(f"{self._name} is not UTF-8 text.", file=self._name) from error
        self._seen = _ReadManifest(found.tag, text, read_manifest(text, self._name), time.monotonic())
        return self._seen

    def _load(self, entry: ManifestEntry) -> RegisteredSchema:
        where = f"{self._name} line {entry.line} (id {entry.schema_id})"
        root = entry.import_root.strip("/")
        prefix = f"{root}/" if root else ""
        mistake = path_mistake(entry.file)
        if mistake is None and not entry.file.startswith(prefix):
            mistake = f"is not under import_root {root!r}"
        text = None if mistake else self._text(entry.file, where)
        if text is None:
            raise _invalid(
                f"{where}: the file {entry.file!r} {mistake or 'is not there'}.", file=self._name, line=entry.line
            )
        references = transitive_imports(text, lambda name: self._import(prefix, name, where))
        path = entry.file.removeprefix(prefix)
        return RegisteredSchema(entry.schema_id, entry.subject, entry.version, text, path, references, entry.message)

    def _import(self, prefix: str, name: str, where: str) -> str | None:
        # a path that must not be a file is no file here; protoc then names the line that imports it
        return None if path_mistake(name) else self._text(prefix + name, where)

    def _text(self, relative: str, where: str) -> str | None:
        path = f"{self._folder}/{relative}"
        with _folder_errors(path):
            try:
                if self._here is not None and not self._is_inside(relative):
                    raise _invalid(f"{where}: the file {relative!r} is outside of the folder.", file=self._name)
                # a pipe would keep us waiting
                if self._here is not None and not (self._here / relative).is_file():
                    return None
                return self._storage.read(path).decode()
            except FileNotFoundError:
                return None
            except UnicodeDecodeError as error:
                raise _invalid(f"{where}: the file {relative!r} is not UTF-8 text.", file=self._name) from error
            except RuntimeError as error:
                raise _invalid(f"{where}: the file {relative!r} is a link to itself.", file=self._name) from error

    def _is_inside(self, relative: str) -> bool:
        assert self._here is not None
        return (self._here / relative).resolve().is_relative_to(self._here.resolve())

    def _known(self, manifest: Manifest, schema: NewSchema) -> ManifestEntry | None:
        wanted = (schema.text, needed_imports(schema), schema.message)
        for entry in _of_subject(manifest, schema.subject):
            with suppress(SchemaInvalid):
                loaded = self._load(entry)
                if (loaded.text, loaded.references, loaded.message) == wanted:
                    return entry
        return None

    def _write(self, manifest: Manifest, schema: NewSchema) -> ManifestEntry:
        versions = _of_subject(manifest, schema.subject)
        version = versions[-1].version + 1 if versions else 1
        files = (ImportedFile(schema.path, schema.text), *needed_imports(schema))
        root = self._written(f"{game_key(schema.subject)}/v{version}", files)
        file = f"{root}/{schema.path}"
        return ManifestEntry(manifest.next_id, schema.subject, version, file, root, schema.message, self._made_by)

    def _written(self, wanted: str, files: Sequence[ImportedFile]) -> str:
        """Return the folder that the files are in now; where another file is in their way, it has another name."""
        root, attempt = wanted, 1
        while not self._create_all(root, files):
            attempt += 1
            root = f"{wanted}-{attempt}"
        return root

    def _create_all(self, root: str, files: Sequence[ImportedFile]) -> bool:
        if self._here is not None and not self._is_inside(root):
            raise _invalid(f"The folder {self._here / root} is a link to somewhere else.", file=root)
        with _folder_errors(f"{self._folder}/{root}"):
            return all(self._storage.create(f"{self._folder}/{root}/{one.path}", one.text.encode()) for one in files)

    def _files(self, entries: Sequence[ManifestEntry]) -> set[str]:
        files: set[str] = set()
        for entry in entries:
            with suppress(SchemaInvalid):
                loaded = self._load(entry)
                begin = f"{root}/" if (root := entry.import_root.strip("/")) else ""
                files |= {begin + name for name in (loaded.path, *(reference.path for reference in loaded.references))}
        return files

    def _delete(self, files: set[str]) -> None:
        with suppress(OSError, DemuxError):
            self._storage.delete(f"{self._folder}/{file}" for file in sorted(files))
        if self._here is None:
            return
        for file in sorted(files):
            with suppress(OSError):
                for parent in (self._here / file).parents:
                    if parent == self._here:
                        break
                    parent.rmdir()

    def _replace(self, seen: _ReadManifest, text: str) -> bool:
        """Write the manifest; return False where it is not the one any more that was read."""
        with _folder_errors(self._name):
            if seen.tag is None:
                is_done = self._storage.create(self._name, text.encode())
            else:
                is_done = self._storage.replace(self._name, text.encode(), seen.tag) is not None
        self._seen = None
        return is_done


def _of_subject(manifest: Manifest, subject: str) -> list[ManifestEntry]:
    found = (entry for entry in manifest.entries if entry.subject == subject)
    return sorted(found, key=lambda entry: entry.version)


def _invalid(message: str, **fields: object) -> SchemaInvalid:
    return SchemaInvalid(message, "Correct the registry's folder.", **fields)


@contextmanager
def _folder_errors(path: str) -> Iterator[None]:
    """Raise a file's error as one of the registry, with the reason; errors of a schema itself stay."""
    try:
        yield
    except (SchemaInvalid, SchemaUnknown):
        raise
    except (DemuxError, OSError) as error:
        message = error.message if isinstance(error, DemuxError) else f"{error.strerror or error}."
        raise RegistryUnavailable(
            f"The registry cannot use {path}: {message}",
            "Check that the folder is there and may be used; then run again.",
            path=path,
        ) from error
