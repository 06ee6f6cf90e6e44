"""Which monitors learn of a command's progress: those that the variables of OpenTelemetry and OpenLineage ask for.

Their libraries are loaded only then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from demux.core.extras import missing_extra
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.pipeline.observers.observer import Observer

_LOG = logging.getLogger("demux")

_Maker = Callable[[Settings, Mapping[str, str]], Observer]

# what was said once in this process
_said: set[str] = set()
_SIGNALS = ("traces", "metrics")
_PREFERRED_PROTOCOL = "http/protobuf"


def monitors_of(settings: Settings, environ: Mapping[str, str], warn: Callable[[str], None]) -> list[Observer]:
    """Return what learns of one run of a command; what cannot be had is said once, and the command does without.

    Args:
        warn: shows a sentence to the person who began the command.
    """
    makers: list[tuple[Callable[[Mapping[str, str]], object], str, _Maker]] = [
        (signals_asked, "traces and metrics", _telemetry),
        (lambda variables: lineage_asked(variables, _folders()), "lineage", _lineage),
    ]
    found: list[Observer] = []
    for asked, what, make in makers:
        try:
            if asked(environ):
                found.append(make(settings, environ))
        except Exception as error:  # a command must not fail for what monitors it
            missing = missing_extra(error)
            why = f"{missing.message} {missing.remedy}" if missing else f"{type(error).__name__}: {error}"
            _say_once(warn, f"The environment asks for {what}, and nothing is sent. {why}")
    return found


def _folders() -> tuple[Path, ...]:
    return Path.cwd(), Path("~/.openlineage").expanduser()


def _say_once(warn: Callable[[str], None], sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        _LOG.warning("%s", sentence)
        warn(sentence)


def _telemetry(settings: Settings, environ: Mapping[str, str]) -> Observer:
    from demux.pipeline.observers.signals import signals
    from demux.pipeline.observers.spans import Telemetry

    return Telemetry(signals(tuple(sorted(signals_asked(environ).items()))), settings.root, settings.round_engine)


def _lineage(settings: Settings, environ: Mapping[str, str]) -> Observer:
    from demux.pipeline.observers.lineage import Lineage
    from demux.pipeline.observers.lineage_sender import columns_of, sender

    layout = layout_of(settings)
    return Lineage(settings, layout, environ, sender().send, columns_of(layout))


def signals_asked(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the entry points of the exporters of each signal that is asked for: `traces`, `metrics`.

    A signal is asked for by its exporter (`OTEL_TRACES_EXPORTER`), or by an endpoint of OTLP. Ours is OTLP over HTTP
    where the environment names no other protocol.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return {}
    found = {signal: _exporters(environ, signal.upper()) for signal in _SIGNALS}
    return {signal: exporters for signal, exporters in found.items() if exporters}


def lineage_asked(environ: Mapping[str, str], folders: Sequence[Path] = ()) -> bool:
    """Return whether events of lineage are asked for: by a URL, a transport, or a file of settings.

    Args:
        folders: where OpenLineage's client looks for openlineage.yml.
    """
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if _first(environ, "OPENLINEAGE_URL", "OPENLINEAGE_CONFIG"):
        return True
    named = any(name.startswith("OPENLINEAGE__TRANSPORT") and value.strip() for name, value in environ.items())
    return named or any((folder / "openlineage.yml").is_file() for folder in folders)


def _exporters(environ: Mapping[str, str], signal: str) -> tuple[str, ...]:
    endpoint = _first(environ, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    names = _first(environ, f"OTEL_{signal}_EXPORTER") or ("otlp" if endpoint else "")
    protocol = _first(environ, f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp = "otlp_proto_grpc" if (protocol or _PREFERRED_PROTOCOL) == "grpc" else "otlp_proto_http"
    given = dict.fromkeys(name.strip() for name in names.split(","))
    return tuple(otlp if name == "otlp" else name for name in given if name not in ("", "none"))


def _first(environ: Mapping[str, str], *names: str) -> str:
    return next((value for name in names if (value := environ.get(name, "").strip())), "")
