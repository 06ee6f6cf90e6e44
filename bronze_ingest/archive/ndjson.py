"""NDJSON: each line is a JSON object with a record's bytes in base64; a bad line does not spoil the next one.

`{"value": "<base64>", "key": "<base64>", "topic": "…", "partition": 0, "offset": 0, "timestamp": …,
 "headers": [{"key": "…", "value": "<base64>"}]}`. Only `value` must be there, null for a record without one. A
`timestamp` may also be milliseconds since 1970. Other keys are passed over.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from bronze_ingest.archive.byte_reader import FileContent, lines
from bronze_ingest.archive.record_batch import MAX_RECORD_BYTES, Optional, RecordRows

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:([Zz])|([+-]\d\d):?(\d\d))?", re.ASCII
)
# the years 1 to 9999
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


class _Malformed(Exception):
    """The line is no record; says why."""


def ndjson(content: FileContent) -> Iterator[RecordRows]:
    """Yield the records in batches, malformed lines among them; empty lines are passed over."""
    rows = RecordRows()
    for start, text, size in lines(content, MAX_RECORD_BYTES):
        if not text.strip() and content.broken is None:
            continue
        if rows.is_full(len(text)):
            yield rows
            rows = RecordRows()
        try:
            if content.broken is not None:
                raise _Malformed("the data ends within a line")
            if size > len(text):
                raise _Malformed(f"a line of more than {MAX_RECORD_BYTES} bytes")
            value, optional = _record(text.removeprefix(_BYTE_ORDER_MARK) if start == 0 else text)
        except _Malformed as malformed:
            rows.refuse(start, text, content.sentence(start, size, str(malformed)))
        else:
            rows.add(start, value, optional, size)
    if rows.values:
        yield rows


def _record(line: bytes) -> tuple[bytes | None, Optional]:
    """Return the record of a line.

    Raises:
        _Malformed: the line is none.
    """
    fields = _object(line)
    if "value" not in fields:
        raise _Malformed("no key `value`")
    optional = (
        _text(fields.get("topic"), "topic"),
        _integer(fields.get("partition"), "partition", 31),
        _integer(fields.get("offset"), "offset", 63),
        _microseconds(fields.get("timestamp")),
        _bytes(fields.get("key"), "key"),
        _headers(fields.get("headers")),
    )
    return _bytes(fields["value"], "value"), optional


def _object(line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line.decode())
    except UnicodeDecodeError:
        raise _Malformed("not UTF-8") from None
    except RecursionError:
        raise _Malformed("JSON that is nested too deeply") from None
    except ValueError as error:
        raise _Malformed(f"not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise _Malformed("not a JSON object")
    return parsed


def _text(value: object, key: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Malformed(f"`{key}` is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Malformed(f"`{key}` has half of a surrogate pair") from None
    return value


def _integer(value: object, key: str, bits: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits) <= value < 1 << bits:
        raise _Malformed(f"`{key}` is no integer of {bits + 1} bits")
    return value


def _bytes(value: object, key: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Malformed(f"`{key}` is no text in base64")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise _Malformed(f"`{key}` is no base64") from None


def _headers(value: object) -> list[dict[str, str | bytes | None]] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(header, dict) for header in value):
        raise _Malformed("`headers` is no list of objects")
    return [
        {"key": _text(header.get("key"), "headers.key"), "value": _bytes(header.get("value"), "headers.value")}
        for header in value
    ]


def _microseconds(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and _FIRST_MS <= value <= _LAST_MS:
        return value * 1000
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise _Malformed("`timestamp` is neither ISO 8601 nor milliseconds since 1970")
    day, minute, second, fraction, _, hours, minutes = found.groups()
    try:
        # without a zone it is UTC; python 3.10 takes no other form than this one
        zone = f"{hours}:{minutes}" if hours else "+00:00"
        time = datetime.fromisoformat(f"{day}T{minute}:{second or '00'}.{(fraction or '')[:6]:0<6}{zone}")
    except ValueError as error:
        raise _Malformed(f"`timestamp` is no time: {error}") from None
    microseconds = (time - _EPOCH) // timedelta(microseconds=1)
    if not _FIRST_MS <= microseconds // 1000 <= _LAST_MS:
        raise _Malformed("`timestamp` is not within the years 1 to 9999")
    return microseconds
