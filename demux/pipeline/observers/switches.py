"""What the environment asks for, by the variables that OpenTelemetry and OpenLineage define.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables
https://openlineage.io/docs/client/python/configuration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

_SIGNALS = ("traces", "metrics")
_PREFERRED_PROTOCOL = "http/protobuf"


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
