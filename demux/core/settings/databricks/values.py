"""The kinds of values that the settings of a workspace have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from demux.core.secrets import is_secret_option

# what the platform itself puts on a cluster, and what says whose a job is
_RESERVED_TAGS = frozenset(
    {"vendor", "creator", "clusterid", "clustername", "jobid", "name", "resourceclass", "runname"}
)
_RESERVED_PREFIXES = ("protobuf_demux", "databricks", "aws:")
# a job may have 25, and three are ours
_MAX_TAGS = 22
# a cluster may have 45: those three too, and one that says that it is a single node
MAX_CLUSTER_TAGS = 41
_TAG = re.compile(r"[\w +\-=.:/@]*", re.ASCII)
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
EMAIL = r"[^@\s{}$]+@[^@\s{}$]+"
_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^/]+(/|$)")
_SECRET_OF_CLUSTER = re.compile(r"\{\{secrets/[^/{}]+/[^/{}]+\}\}")


def is_remote(place: str) -> bool:
    """Return whether a cluster of a workspace reaches the path or URI: a URI of cloud storage, or a volume."""
    return _REMOTE.match(place) is not None or re.match(r"/Volumes(/[^/]+){3}(/|$)", place) is not None


def require_no_secret(values: Mapping[str, str]) -> None:
    """Let values pass whose names do not speak of secrets, or that refer to one.

    Raises:
        ValueError: one holds a secret itself; the error does not repeat it.
    """
    literal = [n for n, value in values.items() if is_secret_option(n) and not _SECRET_OF_CLUSTER.fullmatch(value)]
    if literal:
        raise ValueError(f"{', '.join(sorted(literal))} must be {{{{secrets/SCOPE/KEY}}}}, never the secret itself")


def matching(pattern: str, expected: str) -> AfterValidator:
    """Return the check that a text is this as a whole; else the error says what was expected."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}")
        return text

    return AfterValidator(check)


def _principal(name: str) -> str:
    if not name.strip() or any(c in "{}$" or unicodedata.category(c) in {"Cc", "Cs"} for c in name):
        raise ValueError("expected the name of a principal")
    return name


def _tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in tags.items():
        lower = key.lower()
        if lower in _RESERVED_TAGS or lower.startswith(_RESERVED_PREFIXES):
            raise ValueError(f"the tag {key} is reserved")
        if not 1 <= len(key) <= 127 or len(value) > 255 or not _TAG.fullmatch(key + value):
            raise ValueError(
                f"the tag {key}: expected up to 127 (value: 255) letters, digits, spaces and + - = . _ : / @"
            )
    if len(tags) > _MAX_TAGS:
        raise ValueError(f"expected {_MAX_TAGS} tags or fewer")
    return tags


def _wheel_folder(path: str) -> str:
    root, *parts = path.rstrip("/").split("/")
    top, below = "".join(parts[:1]), parts[1:]
    least = None if root else {"Volumes": 3, "Workspace": 1}.get(top)
    legal = all(part not in {"", ".", ".."} and re.fullmatch(r"[^\x00-\x1f\\{}$*?]+", part) for part in below)
    if least is None or len(below) < least or not legal:
        raise ValueError("expected a folder such as /Volumes/catalog/schema/volume/wheels or /Workspace/Shared/wheels")
    return path.rstrip("/")


Principal = Annotated[str, AfterValidator(_principal)]
ApplicationId = Annotated[str, matching(_UUID, "the application id of the service principal, a UUID, not its name")]
Email = Annotated[str, matching(EMAIL, "an e-mail address")]
Tags = Annotated[Mapping[str, str], AfterValidator(_tags)]
WheelFolder = Annotated[str, AfterValidator(_wheel_folder)]
# what needs no quotes in SQL
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,255}$")]
Token = Annotated[
    str, matching(r"[A-Za-z0-9._-]{1,100}", "1 to 100 letters, digits, `.`, `_` and `-`, as the workspace lists it")
]
Seconds = Annotated[int, Field(ge=0, le=30 * 24 * 3600)]
