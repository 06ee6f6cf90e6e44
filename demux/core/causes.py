"""The closed list of reasons why a record is in quarantine.

`bronze_ingest/unwrap.py` gives those of wrapper and name, `deserializer/decoders/schema_decision.py` those of schemas,
`deserializer/decoders/arrow.py` that of a payload. `tools/runbook/advice.yml` says what they mean to a person on call.
"""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """The stage that quarantined a record."""

    BRONZE = "bronze"
    SILVER = "silver"


class Cause(Enum):
    """Why a record is in quarantine; the value is what the `cause` column holds."""

    MALFORMED_FILE = "MALFORMED_FILE"
    MALFORMED_WRAPPER = "MALFORMED_WRAPPER"
    INVALID_GAME_NAME = "INVALID_GAME_NAME"
    MALFORMED_FRAME = "MALFORMED_FRAME"
    SCHEMA_ID_CONFLICT = "SCHEMA_ID_CONFLICT"
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
    INVALID_SCHEMA = "INVALID_SCHEMA"
    MALFORMED_PAYLOAD = "MALFORMED_PAYLOAD"
    SCHEMA_CONFLICT = "SCHEMA_CONFLICT"
    SCHEMA_FROZEN = "SCHEMA_FROZEN"


# causes of records that never became a row of bronze: there is nothing to decode again
OF_BRONZE = frozenset(
    {
        Cause.MALFORMED_FILE,
        Cause.MALFORMED_WRAPPER,
        Cause.INVALID_GAME_NAME,
        Cause.MALFORMED_FRAME,
        Cause.SCHEMA_ID_CONFLICT,
    }
)


class RemovalReason(Enum):
    """Why a row of bronze is not there any more.

    Attributes:
        RETIRED: it was old, and its game had read it (`demux maintain`): the ledger counts it as if it were there.
        FORGOTTEN: a person asked for that (`demux forget`): it is in no table any more.
    """

    RETIRED = "retired"
    FORGOTTEN = "forgotten"
