"""Events as payload bytes: event number n is the same bytes whenever, and in whatever batch, it is made. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from producer.schemas import FieldKind, Game, GameField, columns, device_has_os, outcomes

Words = npt.NDArray[np.uint64]

# what each of an event's random words decides
GAME, VERSION, USER, TIME, COLUMNS, IS_FAULT, WHICH_FAULT, FAULT_DETAIL = range(8)
_WORDS = 8
_WORDS_PER_STEP = 4

_MICROS_PER_HOUR = 3_600_000_000
_GOLDEN = 0x9E3779B97F4A7C15
_USERS = [f"user_{number:04}" for number in range(5000)]
_TEXTS = [f"text {number}" for number in range(250)] + ["", "naïve", "日本語", "🎲", 'quote " and \\', "line\nbreak"]
_TAGS = [[], ["new"], ["new", "paid"], ["tournament"], ["a", "b", "c"], ["new", "new"]]
_SCORES = [{}, {"round_1": 10}, {"round_1": 7, "round_2": -3}, {"total": 2**40}, {"a": 0, "b": 1, "c": 2}]
_MODELS = ["phone", "tablet", "desktop", "console"]
_SYSTEMS = ["linux", "android", "ios", ""]


@dataclass(frozen=True, slots=True)
class EventWriter:
    """Writes payloads of one game in one schema version."""

    game: Game
    version: int
    schema_id: int
    message: type[Message]


def random_words(seed: int, first: int, count: int) -> Words:
    """Return eight random words for each of the events `first` … `first + count - 1`, shape (count, 8).

    The generator counts instead of walking on, so the words of an event depend on the seed and its number only.
    """
    generator = np.random.Philox(key=seed)
    generator.advance(first * (_WORDS // _WORDS_PER_STEP))
    return generator.random_raw(count * _WORDS).reshape(count, _WORDS)


def payloads(writer: EventWriter, words: Words, now_us: int) -> list[bytes]:
    """Return one payload per row of words, in order.

    Args:
        words: shape (n, 8).
        now_us: microseconds since 1970; events happened in the hour before.
    """
    fields = columns(writer.game, writer.version)
    names = [field.name for field in fields]
    message = writer.message
    rows = zip(*(_values(writer, field, words, now_us) for field in fields), strict=True)
    # maps have no order of their own on the wire; the same event must be the same bytes
    return [message(**dict(zip(names, row, strict=True))).SerializeToString(deterministic=True) for row in rows]


def _values(writer: EventWriter, field: GameField, words: Words, now_us: int) -> list[Any]:
    match field.name:
        case "game_name":
            return [writer.game.name] * len(words)
        case "user_name":
            return _chosen(_USERS, words[:, USER])
        case "event_timestamp":
            micros = now_us - (words[:, TIME] % np.uint64(_MICROS_PER_HOUR)).astype(np.int64)
            seconds, rest = np.divmod(micros, 1_000_000)
            timestamp = _class_of(writer, field)
            pairs = zip(seconds.tolist(), (rest * 1000).tolist(), strict=True)
            return [timestamp(seconds=second, nanos=nano) for second, nano in pairs]
        case _:
            return _random_values(writer, field, _mixed(words[:, COLUMNS], field.number))


def _random_values(writer: EventWriter, field: GameField, bits: Words) -> list[Any]:
    match field.kind:
        case FieldKind.STRING:
            return _chosen(_TEXTS, bits)
        case FieldKind.BYTES:
            raw = bits.tobytes()
            return [raw[at : at + 8] for at in range(0, len(raw), 8)]
        case FieldKind.DEVICE:
            return _chosen(_devices(writer, field), bits)
        case FieldKind.OUTCOME:
            return list((bits % np.uint64(len(outcomes(writer.version)))).tolist())
        case FieldKind.TAGS:
            return _chosen(_TAGS, bits)
        case FieldKind.SCORES:
            return _chosen(_SCORES, bits)
        case _:
            return list(_numbers(field.kind, bits).tolist())


def _numbers(kind: FieldKind, bits: Words) -> npt.NDArray[Any]:
    upper: Words = bits >> np.uint64(32)
    match kind:
        case FieldKind.BOOL:
            return np.asarray(np.greater(bits, np.uint64(2**63)))
        case FieldKind.INT32:
            return np.asarray(upper.astype(np.uint32).view(np.int32))
        case FieldKind.UINT32 | FieldKind.FIXED32:
            return upper
        case FieldKind.UINT64:
            return bits
        case FieldKind.FLOAT:
            return np.asarray((bits >> np.uint64(40)).astype(np.float32) / np.float32(256))
        case FieldKind.DOUBLE:
            return np.asarray((bits >> np.uint64(11)).astype(np.float64) / 2**40)
        case _:
            return bits.view(np.int64)


def _devices(writer: EventWriter, field: GameField) -> list[Message | None]:
    device = _class_of(writer, field)
    made = []
    for number in range(16):
        values = {"model": _MODELS[number % 4], "memory_mb": 1024 * (number // 4)}
        if device_has_os(writer.version):
            values["os"] = _SYSTEMS[number // 4]
        made.append(device(**values))
    # every fifth or so has no device at all
    return [*made, *[None] * 4]


def _class_of(writer: EventWriter, field: GameField) -> Callable[..., Message]:
    message_type = writer.message.DESCRIPTOR.fields_by_name[field.name].message_type
    return GetMessageClass(cast("Descriptor", message_type))


def _chosen(choices: list[Any], bits: Words) -> list[Any]:
    return [choices[at] for at in (bits % np.uint64(len(choices))).tolist()]


def _mixed(bits: Words, number: int) -> Words:
    """Return other bits for each field number (the finalizer of splitmix64)."""
    mixed: Words = bits + np.uint64(number * _GOLDEN & 0xFFFF_FFFF_FFFF_FFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
