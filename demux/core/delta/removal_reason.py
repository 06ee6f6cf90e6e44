"""Why rows were taken out of bronze for good; what went is in the table `control/removed`. Pure."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why a row of bronze is not there any more.

    Attributes:
        RETIRED: it was old, and its game had read it (`demux maintain`): the ledger counts it as if it were there.
        FORGOTTEN: somebody asked for that (`demux forget`): it is in no table any more.
    """

    RETIRED = "retired"
    FORGOTTEN = "forgotten"
