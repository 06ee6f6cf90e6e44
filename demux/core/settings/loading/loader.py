"""Settings from `demux.yml`, the environment and the command line, with every mistake reported at once.

The field decides what a text becomes, in all three places alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import NamedTuple, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from demux.core.errors import SettingsInvalid
from demux.core.secrets import is_secret_option
from demux.core.settings.loading.template import PREFIX, section_in
from demux.core.settings.loading.yaml_positions import Key, document_of
from demux.core.settings.settings import Settings
from demux.core.settings.types import RULE, Section, is_class_of
from demux.core.storage.location import has_scheme
from demux.core.text import printable

DEFAULT_FILE = Path("demux.yml")

MAX_FILE_BYTES = 256 * 1024
_MAX_SHOWN = 60
_MAX_LINES = 100
_NO_SECTION = {"mapping_type", "dict_type", "model_type"}
_SECTIONS_WITH_SECRETS = (["kafka"], ["registry"], ["registries"])


class _ValueOrigin(NamedTuple):
    """Where a value was written; line 0 for what has no lines."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class _SettingsMistake(NamedTuple):
    origin: _ValueOrigin
    text: str


@dataclass(slots=True)
class _SettingsLayer:
    """The values of one place, where each was written, and the mistakes met while reading."""

    source: str
    values: dict[str, object] = field(default_factory=dict)
    origins: dict[Key, _ValueOrigin] = field(default_factory=dict)
    mistakes: list[_SettingsMistake] = field(default_factory=list)


def load(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    defaults: Mapping[str, object] | None = None,
) -> Settings:
    """The settings: defaults, replaced by the file, by the environment, by the command line, in this order.

    Lists are replaced as a whole; `spark.conf` is merged key by key. Reads the file, touches nothing else.

    Args:
        path: the settings file; None for `demux.yml` in the working directory, if there is one.
        environ: environment variables, such as DEMUX_ROOT and DEMUX_GAMES__LIMIT; an empty one counts as not set.
        overrides: dotted keys of the command line, such as `games.limit`; None counts as not given.
        defaults: dotted keys that the command has defaults of its own for.

    Raises:
        SettingsInvalid: anything is wrong in any place; `message` has one line per mistake (the first 100),
            `fields["mistakes"]` has all these lines.
    """
    layers = (
        _override_layer(defaults or {}),
        _file_layer(path),
        _environment_layer(environ),
        _override_layer(overrides),
    )
    mistakes = [mistake for layer in layers for mistake in sorted([*layer.mistakes, *_refused(layer, rules=False)])]
    merged = reduce(_merged, layers)
    # a rule over several fields can be broken by the layers together only
    mistakes = mistakes or _refused(merged, rules=True)
    if mistakes:
        # what users wrote may hold line ends and terminal codes; one mistake stays one harmless line
        lines = tuple(printable(f"{mistake.origin}: {mistake.text}") for mistake in mistakes)
        more = (f"and {len(lines) - _MAX_LINES} more mistakes",) if len(lines) > _MAX_LINES else ()
        remedy = "Correct what is named and run again; `demux init` writes a file with every setting explained."
        raise SettingsInvalid("\n".join((*lines[:_MAX_LINES], *more)), remedy, mistakes=lines)
    return Settings.model_validate(merged.values)


class _ValueShape(Enum):
    """The kinds of values in a setting."""

    SCALAR = "scalar"
    LIST = "list"
    MAPPING = "mapping"


def with_absolute_paths(settings: Settings) -> Settings:
    """Return the settings with absolute paths: Spark does not resolve a relative one everywhere."""
    return settings.model_copy(
        update={
            "root": _absolute(settings.root),
            "source": settings.source.model_copy(update={"path": _absolute(settings.source_path)}),
            "registry": settings.registry.model_copy(update={"path": _absolute(settings.registry_path)}),
        }
    )


def _absolute(path: str) -> str:
    return path if has_scheme(path) else str(Path(path).absolute())


def _shape(info: FieldInfo) -> _ValueShape:
    origins = {get_origin(kind) or kind for kind in (info.annotation, *get_args(info.annotation))}
    if get_origin(info.annotation) is Mapping or section_in(info):
        return _ValueShape.MAPPING
    return _ValueShape.LIST if tuple in origins else _ValueShape.SCALAR


def _leaves(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        if section := section_in(info):
            yield from _leaves(section, f"{above}{name}.")
        else:
            yield f"{above}{name}", info


_LEAVES = dict(_leaves(Settings))
_VARIABLES = {PREFIX + dotted.upper().replace(".", "__"): dotted for dotted in _LEAVES}


def _file_layer(path: Path | None) -> _SettingsLayer:
    layer = _SettingsLayer(str(path or DEFAULT_FILE))
    text = _file_text(layer, path)
    if text is None:
        return layer
    document = document_of(text)
    layer.origins = {key: _ValueOrigin(layer.source, line) for key, line in document.lines.items()}
    for slip in document.slips:
        about = f"{_dotted(slip.key)}: " if slip.key else ""
        layer.mistakes.append(_SettingsMistake(_ValueOrigin(layer.source, slip.line), f"{about}{slip.reason}"))
    if isinstance(document.value, dict):
        layer.values = _filled(Settings, document.value)
    elif document.value is not None:
        found = f"expected 'key: value' lines, found {_shown(document.value)}"
        layer.mistakes.append(_SettingsMistake(_ValueOrigin(layer.source, 1), found))
    return layer


def _file_text(layer: _SettingsLayer, path: Path | None) -> str | None:
    """The file's text; None when there is no default file, or after a mistake."""
    line = 0
    try:
        with (path or DEFAULT_FILE).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) <= MAX_FILE_BYTES:
            return content.decode("utf-8-sig")
        reason = f"is larger than {MAX_FILE_BYTES} bytes"
    except FileNotFoundError:
        if path is None:
            return None
        reason = "there is no such file; `demux init` writes one"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"byte {content[error.start]:#04x} is not UTF-8"
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    layer.mistakes.append(_SettingsMistake(_ValueOrigin(layer.source, line), reason))
    return None


def _filled(model: type[BaseModel], values: dict[str, object]) -> dict[str, object]:
    """The values without sections, lists and mappings that have nothing below them: those mean the default."""
    filled: dict[str, object] = {}
    for name, value in values.items():
        info = model.model_fields.get(name)
        if value is None and info and _shape(info) is not _ValueShape.SCALAR:
            continue
        section = info and section_in(info)
        filled[name] = _filled(section, value) if section and isinstance(value, dict) else value
    return filled


def _environment_layer(environ: Mapping[str, str]) -> _SettingsLayer:
    layer = _SettingsLayer("environment")
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or not text:
            continue
        if dotted := _VARIABLES.get(variable):
            _put(layer, dotted, text, _ValueOrigin(variable))
        else:
            unknown = f"unknown variable{_right_variable(variable)}"
            layer.mistakes.append(_SettingsMistake(_ValueOrigin(variable), unknown))
    return layer


def _override_layer(overrides: Mapping[str, object]) -> _SettingsLayer:
    layer = _SettingsLayer("command line")
    for dotted, value in overrides.items():
        if value is not None:
            _put(
                layer, dotted, os.fspath(value) if isinstance(value, os.PathLike) else value, _ValueOrigin(layer.source)
            )
    return layer


def _put(layer: _SettingsLayer, dotted: str, value: object, origin: _ValueOrigin) -> None:
    """Set one dotted key in the layer; what follows the name of a mapping, dots and all, is a key of that mapping."""
    leaf = next((leaf for leaf in _LEAVES if dotted.startswith(f"{leaf}.")), dotted)
    key = (*leaf.split("."), *([dotted[len(leaf) + 1 :]] if leaf != dotted else []))
    if isinstance(value, str) and dotted in _LEAVES:
        try:
            value = _from_text(_LEAVES[dotted], value)
        except ValueError as error:
            layer.mistakes.append(_SettingsMistake(origin, f"{dotted}: {error}"))
            return
    nested = reduce(lambda below, name: {name: below}, reversed(key), value)
    layer.values = _deep(layer.values, cast("dict[str, object]", nested))
    layer.origins[key] = origin


def _from_text(info: FieldInfo, text: str) -> object:
    """The value of a variable or option: a list is `a, b` or `[a, b]`, a mapping `{a: 1, b: 2}`, null no value."""
    match _shape(info):
        case _ValueShape.SCALAR:
            return None if text == "null" and type(None) in get_args(info.annotation) else text
        case _ValueShape.LIST if not text.lstrip().startswith("["):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case _ValueShape.LIST | _ValueShape.MAPPING:
            document = document_of(text)
            if document.slips:
                raise ValueError("; ".join(slip.reason for slip in document.slips))
            return document.value


def _deep(base: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    merged = dict(base)
    for name, value in over.items():
        below = merged.get(name)
        merged[name] = _deep(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _merged(base: _SettingsLayer, over: _SettingsLayer) -> _SettingsLayer:
    return _SettingsLayer("settings", _deep(base.values, over.values), {**base.origins, **over.origins})


def _refused(layer: _SettingsLayer, *, rules: bool) -> list[_SettingsMistake]:
    try:
        Settings.model_validate(layer.values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [_mistake(layer, details) for details in found if rules or details["type"] != RULE]
    return []


def _mistake(layer: _SettingsLayer, details: ErrorDetails) -> _SettingsMistake:
    key = details["loc"]
    prefixes = (key[:length] for length in range(len(key), 0, -1))
    origin = next((layer.origins[prefix] for prefix in prefixes if prefix in layer.origins), _ValueOrigin(layer.source))
    return _SettingsMistake(origin, f"{_dotted(key)}: {_sentence(details)}" if key else _sentence(details))


def _sentence(details: ErrorDetails) -> str:
    shown = "this value" if _is_hidden(details) else _shown(details["input"])
    context = details.get("ctx", {})
    match details["type"]:
        case "rule" | "secret":
            return details["msg"]
        case "extra_forbidden":
            return f"unknown key{_right_key(details['loc'])}"
        case "enum":
            return f"{shown} is not allowed{_right_choice(details)}"
        case "int_type" | "int_parsing" | "int_parsing_size" | "int_from_float":
            expected = "expected a whole number"
        case "float_type" | "float_parsing" | "finite_number":
            expected = "expected a number"
        case "string_type":
            expected = "expected text"
        case "tuple_type":
            expected = "expected a list"
        case "mapping_type" | "dict_type" | "model_type":
            expected = "expected a section of 'key: value' lines"
        case "greater_than_equal":
            expected = f"expected {context['ge']} or more"
        case "less_than_equal":
            expected = f"expected {context['le']} or less"
        case "string_pattern_mismatch":
            expected = f"expected text that matches {context['pattern']}"
        case "too_long":
            expected = f"expected {context['max_length']} entries or fewer"
        case "string_too_short":
            expected = "expected some text"
        case "bool_type" | "bool_parsing":
            expected = "expected true or false"
        case "value_error":
            expected = str(context["error"])
        case _:
            expected = details["msg"]
    return f"{shown}: {expected}"


def _is_hidden(details: ErrorDetails) -> bool:
    key = [str(part) for part in details["loc"]]
    # a text in place of a section may be the section's own, badly written
    is_section = details["type"] in _NO_SECTION and key[:1] in _SECTIONS_WITH_SECRETS
    return is_section or any(is_secret_option(part) for part in key)


def _right_key(key: Key) -> str:
    """What to do instead, else the nearest key here, else one of this name elsewhere, else every key allowed here."""
    *above, wrong = (str(part) for part in key)
    section = _section_of(above)
    if hint := section.hints.get(wrong):
        return f"; {hint}"
    beside = section.model_fields
    nearest = get_close_matches(wrong.lower(), beside, n=1)
    elsewhere = [dotted for dotted in _LEAVES if dotted.rpartition(".")[2] == wrong]
    for found in (*(".".join((*above, name)) for name in nearest), *elsewhere):
        return f"; did you mean '{found}'?"
    return f"; allowed: {', '.join(beside)}"


def _right_variable(variable: str) -> str:
    """What to do instead of a setting that there is not, else the nearest variable, else every one that is allowed."""
    bare = variable.upper().removeprefix(PREFIX)
    section: type[Section] = Settings
    for name in bare.lower().split("__"):
        if hint := section.hints.get(name):
            return f"; {hint}"
        info = section.model_fields.get(name)
        below = section_in(info) if info else None
        if below is None:
            break
        section = below
    nearest = get_close_matches(bare, [known.removeprefix(PREFIX) for known in _VARIABLES], n=1)
    return f"; did you mean '{PREFIX}{nearest[0]}'?" if nearest else f"; allowed: {', '.join(_VARIABLES)}"


def _section_of(above: list[str]) -> type[Section]:
    kind = _kind_of(above)
    return kind if is_class_of(kind, Section) else Settings


def _kind_of(key: Iterable[str]) -> object:
    """The type of the value at the key: of a section's field, a mapping's value or a list's item."""
    kind: object = Settings
    for name in key:
        if is_class_of(kind, BaseModel):
            kind = kind.model_fields[name].annotation
        else:
            kind = get_args(kind)[1 if get_origin(kind) is Mapping else 0]
    return kind


def _right_choice(details: ErrorDetails) -> str:
    kind = _kind_of(str(part) for part in details["loc"])
    enum = next(found for found in (kind, *get_args(kind)) if is_class_of(found, Enum))
    choices = [str(member.value) for member in enum]
    nearest = get_close_matches(str(details["input"]).lower(), choices, n=1)
    return "; ".join((f"; allowed: {', '.join(choices)}", *(f"did you mean '{right}'?" for right in nearest)))


def _dotted(key: Key) -> str:
    return _cut(".".join(str(part) for part in key))


def _shown(value: object) -> str:
    match value:
        case None:
            return "no value"
        case dict():
            return "a section"
        case list() | tuple():
            return "a list"
        case _:
            return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
