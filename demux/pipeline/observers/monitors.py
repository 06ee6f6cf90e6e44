"""Which monitors learn of a command's progress: those that the variables of OpenTelemetry and OpenLineage ask for.

Their libraries are loaded only then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from demux.core.extras import missing_extra
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.pipeline.observers.observer import Observer
from demux.pipeline.observers.switches import lineage_asked, signals_asked

_LOG = logging.getLogger("demux")

_Maker = Callable[[Settings, Mapping[str, str]], Observer]

# what was said once in this process
_said: set[str] = set()


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
