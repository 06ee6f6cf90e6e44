"""A schema registry that is a folder of `.proto` files and a manifest, `registry.yml`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from demux.errors import RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.names import game_key
from demux.registry.guids import no_guids
from demux.registry.imports import only_needed, path_mistake, schema_mistake, transitive_imports
from demux.registry.manifest import Entry, Manifest, read_manifest, with_entries, without_entries
from demux.registry.protocol import NewSchema, Reference, RegisteredSchema

MANIFEST = "registry.yml"
_LOCK = ".registry.lock"


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: tuple[int, int, int]
    text: str
    manifest: Manifest


class FolderRegistry:
    """A registry in a folder; reads see every change of the folder at once.

    Args:
        folder: where `registry.yml` and the `.proto` files are.
        made_by: the mark on what is registered through this object.
    """

    def __init__(self, folder: Path, made_by: str | None = None) -> None:
        self._folder = folder
        self._made_by = made_by
        self._seen: _Seen | None = None

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of this id with all its subjects; a mistake in another schema's file does not matter.

        Raises:
            SchemaInvalid: as of every registry, and where entries give the id to different texts.
        """
        entries = [entry for entry in self._read().manifest.entries if entry.schema_id == schema_id]
        if not entries:
            raise SchemaUnknown(
                f"The registry in {self._folder} has no schema {schema_id}.",
                f"Add the schema to {MANIFEST}, then replay the quarantine.",
                schema_id=schema_id,
                folder=str(self._folder),
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
        return tuple(self._load(entry) for entry in _of_subject(self._read().manifest, subject))

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects in alphabetical order."""
        return tuple(sorted({entry.subject for entry in self._read().manifest.entries}))

    def register(
        self, subject: str, text: str, path: str, references: tuple[Reference, ...], message: str | None = None
    ) -> int:
        """Return the id of this content under this subject, registered now if it was not; a second call is safe.

        Writes the files under a folder of their own, then replaces the manifest in one step, under a lock.
        """
        return self.register_all([NewSchema(subject, text, path, references, message)])[0]

    def register_all(self, schemas: Sequence[NewSchema]) -> tuple[int, ...]:
        """Return one id per schema, in the same order; the manifest is replaced once."""
        for schema in schemas:
            if mistake := schema_mistake(schema):
                raise _invalid(f"The schema of {schema.subject!r} cannot be kept: {mistake}.", subject=schema.subject)
        with self._locked(make=True):
            seen = self._read(missing_is_empty=True)
            manifest, ids = seen.manifest, []
            for schema in schemas:
                known = self._known(manifest, schema)
                if known is None:
                    known = self._write(manifest, schema)
                    manifest = Manifest((*manifest.entries, known), known.schema_id + 1)
                ids.append(known.schema_id)
            if added := manifest.entries[len(seen.manifest.entries) :]:
                self._replace(with_entries(seen.text or None, self._name, added, manifest.next_id))
        return tuple(ids)

    def remove(self, *, made_by: str) -> tuple[int, ...]:
        """Return the ids taken out: exactly the entries with this mark, and the files only they need.

        A second call finds nothing. Entries and files of others stay; so do the ids, which are not given again.
        """
        if not (self._folder / MANIFEST).exists():
            return ()
        with self._locked():
            seen = self._read()
            gone = [entry for entry in seen.manifest.entries if entry.made_by == made_by]
            if not gone:
                return ()
            kept = [entry for entry in seen.manifest.entries if entry.made_by != made_by]
            files = self._files(gone) - self._files(kept)
            ids = tuple(sorted({entry.schema_id for entry in gone}))
            self._replace(without_entries(seen.text, self._name, gone, seen.manifest.next_id))
            self._delete(files)
        return ids

    @property
    def _name(self) -> str:
        return str(self._folder / MANIFEST)

    def _read(self, missing_is_empty: bool = False) -> _Seen:
        path = self._folder / MANIFEST
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._seen is None or self._seen.stamp != stamp:
                text = path.read_text("utf-8")
                self._seen = _Seen(stamp, text, read_manifest(text, self._name))
            return self._seen
        except FileNotFoundError as error:
            if missing_is_empty:
                return _Seen((0, 0, 0), "", read_manifest(None, self._name))
            raise _unavailable(self._name, error) from error
        except UnicodeDecodeError as error:
            raise _invalid(f"{self._name} is not UTF-8 text.", file=self._name) from error
        except OSError as error:
            raise _unavailable(self._name, error) from error

    def _load(self, entry: Entry) -> RegisteredSchema:
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
        path = self._folder / relative
        try:
            if not path.resolve().is_relative_to(self._folder.resolve()):
                raise _invalid(f"{where}: the file {relative!r} is outside of the folder.", file=self._name)
            return path.read_bytes().decode() if path.is_file() else None
        except UnicodeDecodeError as error:
            raise _invalid(f"{where}: the file {relative!r} is not UTF-8 text.", file=self._name) from error
        except RuntimeError as error:
            raise _invalid(f"{where}: the file {relative!r} is a link to itself.", file=self._name) from error
        except OSError as error:
            raise _unavailable(str(path), error) from error

    def _known(self, manifest: Manifest, schema: NewSchema) -> Entry | None:
        wanted = (schema.text, only_needed(schema), schema.message)
        for entry in _of_subject(manifest, schema.subject):
            with suppress(SchemaInvalid):
                loaded = self._load(entry)
                if (loaded.text, loaded.references, loaded.message) == wanted:
                    return entry
        return None

    def _write(self, manifest: Manifest, schema: NewSchema) -> Entry:
        versions = _of_subject(manifest, schema.subject)
        version = versions[-1].version + 1 if versions else 1
        root = self._new_root(f"{game_key(schema.subject)}/v{version}")
        for reference in (Reference(schema.path, schema.text), *only_needed(schema)):
            path = self._folder / root / reference.path
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(reference.text, "utf-8", newline="")
            except OSError as error:
                raise _unavailable(str(path), error) from error
        file = f"{root}/{schema.path}"
        return Entry(manifest.next_id, schema.subject, version, file, root, schema.message, self._made_by)

    def _new_root(self, wanted: str) -> str:
        """Return a folder that is not there yet, so that no file of anybody is overwritten."""
        root, attempt = wanted, 1
        while (self._folder / root).exists() or (self._folder / root).is_symlink():
            attempt += 1
            root = f"{wanted}-{attempt}"
        if not (self._folder / root).resolve().is_relative_to(self._folder.resolve()):
            raise _invalid(f"The folder {self._folder / root} is a link to somewhere else.", file=root)
        return root

    def _files(self, entries: Sequence[Entry]) -> set[Path]:
        files: set[Path] = set()
        for entry in entries:
            with suppress(SchemaInvalid):
                loaded = self._load(entry)
                root = self._folder / entry.import_root
                files |= {root / name for name in (loaded.path, *(reference.path for reference in loaded.references))}
        return files

    def _delete(self, files: set[Path]) -> None:
        for path in sorted(files):
            with suppress(OSError):
                path.unlink()
                for parent in path.parents:
                    if parent == self._folder:
                        break
                    parent.rmdir()

    def _replace(self, text: str) -> None:
        temporary = self._folder / f"{MANIFEST}.{os.getpid()}.tmp"
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._folder / MANIFEST)
        except OSError as error:
            raise _unavailable(self._name, error) from error
        finally:
            temporary.unlink(missing_ok=True)
        self._seen = None

    @contextmanager
    def _locked(self, make: bool = False) -> Iterator[None]:
        try:
            if make:
                self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / _LOCK).open("a")
        except OSError as error:
            raise _unavailable(str(self._folder), error) from error
        with lock:
            # the kernel gives it back when the process ends, however it ends
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _of_subject(manifest: Manifest, subject: str) -> list[Entry]:
    found = (entry for entry in manifest.entries if entry.subject == subject)
    return sorted(found, key=lambda entry: entry.version)


def _invalid(cause: str, **fields: object) -> SchemaInvalid:
    return SchemaInvalid(cause, "Correct the registry's folder.", **fields)


def _unavailable(path: str, error: OSError) -> RegistryUnavailable:
    return RegistryUnavailable(
        f"The registry cannot use {path}: {error.strerror or error}.",
        "Check that the folder is there and may be used; then run again.",
        path=path,
    )
