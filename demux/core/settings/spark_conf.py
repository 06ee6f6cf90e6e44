"""The Spark properties on which it depends what tables hold, wherever the session comes from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

TABLE_CONF: Mapping[str, str] = {
    # 10,000 records of 10 MB in one batch would fill every memory; Spark 3.4 does not know it
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.session.timeZone": "UTC",
    # `${...}` in a name must stay what it is
    "spark.sql.variable.substitute": "false",
    # Timestamp reaches back to year 1, which the defaults refuse to write
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
