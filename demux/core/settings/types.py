"""The kinds of values that settings have, and what every group of settings shares."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Annotated, ClassVar, TypeGuard, TypeVar, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from demux.core.names import MAX_NAME_BYTES, invalid_reason
from demux.core.secrets import require_reference
from demux.core.time_expressions import age_of

T = TypeVar("T")

# the type of the errors that break a rule over several fields
RULE = "rule"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_URI_WITH_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/@]*:[^/@]*@")


def is_class_of(kind: object, base: type[T]) -> TypeGuard[type[T]]:
    """Return whether an annotation is a class below `base`."""
    # on Python 3.10 `list[str]` is a `type`, but no class
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, base)


def _location(text: str) -> str:
    if not text.strip():
        raise ValueError("a path or URI must not be blank")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise ValueError("a path or URI must not have control characters")
    # nothing here expands `~`, so a folder of that name would appear in the working directory
    if text == "~" or text.startswith("~/"):
        raise ValueError("`~` is not expanded; write the whole path")
    if _URI_WITH_PASSWORD.match(text):
        raise PydanticCustomError("secret", "must not hold user and password")
    return text


def _game(name: str) -> str:
    if reason := invalid_reason(name, MAX_NAME_BYTES):
        raise ValueError(reason)
    return name


def _url(text: str) -> str:
    # looked at first: what is no URL is shown in the error, and a password may have `/` or `#` in it
    if "@" in text:
        raise PydanticCustomError("secret", "must not hold user and password: use `username` and `password`")
    parts = urlsplit(text)
    # asking for a port that is no number raises ValueError
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("expected http://host:port/path or https://…")
    return text.rstrip("/")


def _age(text: str) -> str:
    if age_of(text) is None:
        raise ValueError("expected an age, such as 7d, 12h or 90m")
    return text.strip()


def timedelta_of(age: str) -> timedelta:
    """Return how long a validated `Age` is."""
    found = age_of(age)
    assert found is not None, "it was validated"
    return found


def epoch_ms(text: str) -> int | None:
    """Return the milliseconds since 1970 of an ISO 8601 time with a zone; None when it is none, or before 1970."""
    try:
        # Python 3.10 does not know the letter Z
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return None if time.tzinfo is None or time < _EPOCH else (time - _EPOCH) // timedelta(milliseconds=1)


def rule(sentence: str) -> PydanticCustomError:
    """Return the error of a rule over several fields, which only all layers together can break."""
    return PydanticCustomError(RULE, "{sentence}", {"sentence": sentence})


Game = Annotated[str, AfterValidator(_game)]
Location = Annotated[str, AfterValidator(_location)]
Text = Annotated[str, Field(min_length=1)]
Age = Annotated[str, AfterValidator(_age)]
Secret = Annotated[str, AfterValidator(require_reference)]
Url = Annotated[str, AfterValidator(_url)]


class Section(BaseModel):
    """A group of settings; immutable, and no key that is not declared.

    Attributes:
        hints: keys that people write and that there are not, each with what to do instead.
    """

    hints: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
