"""How a record of our log is written: as a line of text, or as a JSON object on a line, for a collector of logs."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone

from demux.core.errors import DemuxError

_TEXT = "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"
# given to a logging call as `extra`
FIELDS = ("game", "table", "batch", "rows")


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line.

    Keys: `time` (ISO 8601, UTC), `level`, `logger`, `thread`, `message`; where they are known, `game`, `table`, `batch`
    and `rows`; of an error, `condition` and `exception` (the traceback).
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        values: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        values.update({name: getattr(record, name) for name in FIELDS if hasattr(record, name)})
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, DemuxError):
            values["condition"] = error.condition
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


def formatter_of(*, as_json: bool) -> logging.Formatter:
    """Return what formats the records of our log."""
    return JsonFormatter() if as_json else logging.Formatter(_TEXT)
