"""A record of a deployment as files, one for each version, `00000001.json` and so on, each written once. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from demux.core.errors import PlanRefused

R = TypeVar("R")

VERSION = 2
_FILE = re.compile(r"([0-9]{8,})\.json")


@dataclass(frozen=True, slots=True)
class RecordFormat(Generic[R]):
    """How a record is written: as JSON, with the fields of its dataclass.

    Attributes:
        shape: of the record; it says what is valid.
        about: what it is about, such as `the grants`.
        unusable: makes the error of a file that cannot be used, from its path and the reason.
    """

    deployment: str
    shape: TypeAdapter[R]
    empty: R
    about: str
    unusable: Callable[[str, str], PlanRefused]

    def to_text(self, record: R) -> str:
        """Return the text of a version's file; it is the same each time."""
        fields = self.shape.dump_python(record, mode="json")
        content = {"version": VERSION, "deployment": self.deployment, **fields}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    def from_text(self, text: str, path: str) -> R:
        """Return the record that `to_text` wrote.

        Raises:
            PlanRefused: it is none, or of another version or deployment.
        """
        try:
            content = json.loads(text)
            if (content["version"], content["deployment"]) != (VERSION, self.deployment):
                raise ValueError(f"version {content['version']} of deployment {content['deployment']}")
            return self.shape.validate_python(content)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise self.unusable(path, mistake_in(error)) from None


def mistake_in(error: Exception) -> str:
    """Return in one line why a JSON text is not what it should be."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: {error}"


def file_of(version: int) -> str:
    """Return the name of a version's file; versions are counted from 1."""
    return f"{version:08}.json"


def version_in(name: str) -> int | None:
    """Return the version that a file of this name has; None for another file."""
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else None
