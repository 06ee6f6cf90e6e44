"""How old decoded rows are, by the timestamps of their records. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_type, as_type
from demux.core.columns.types import Primitive
from demux.core.control.freshness import BUCKETS_PER_OCTAVE, LAST_BUCKET, NO_FRESHNESS, Freshness
from demux.core.settings.source import SourceKind
from deserializer.decoders.arrow import SchemaBatch

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_TIME = arrow_type(Primitive.TIMESTAMP)


def ages_of(part: SchemaBatch, now: datetime) -> Freshness:
    """Return how old the good rows are at this time."""
    return row_ages(part.rows.column("timestamp"), part.rows.column("origin"), part.good, now)


def row_ages(timestamps: pa.Array, origins: pa.Array, chosen: Sequence[int], now: datetime) -> Freshness:
    """Return how old the records at these positions are at this time.

    Those without a timestamp do not count, and those of an archive neither: they are old on purpose.

    Args:
        timestamps: of the records; NULL where the source has none.
        origins: as in `POSITION`.
        chosen: positions in both.
        now: the time (UTC).
    """
    if chosen != range(len(timestamps)):
        positions = pa.array(chosen, pa.int64())
        timestamps, origins = timestamps.take(positions), origins.take(positions)
    # not at import: a scalar loads pandas, where it is installed
    archived = pc.equal(origins, pa.scalar(SourceKind.FILES.value))
    if archived.true_count:
        timestamps = pc.if_else(pc.fill_null(archived, False), None, timestamps)
    # few kernels: a batch may be small, and its game one of hundreds
    micros = as_type(timestamps, _TIME).view(pa.int64()).drop_null().to_numpy()
    if not len(micros):
        return NO_FRESHNESS
    ages_ms = np.maximum(((now - _EPOCH) // _MICROSECOND - micros) / 1000, 1.0)
    buckets = np.minimum(np.ceil(np.log2(ages_ms) * BUCKETS_PER_OCTAVE), LAST_BUCKET).astype(np.int64)
    first = int(buckets.min())
    return Freshness(first, tuple(np.bincount(buckets - first).tolist()))
