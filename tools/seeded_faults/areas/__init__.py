"""The faults by area; each file has those of one, as data."""

from __future__ import annotations

from tools.seeded_faults.areas.decoding import DECODING
from tools.seeded_faults.areas.deployment import DEPLOYMENT
from tools.seeded_faults.areas.exactly_once import EXACTLY_ONCE
from tools.seeded_faults.areas.intake import INTAKE
from tools.seeded_faults.areas.ledger import LEDGER
from tools.seeded_faults.areas.upkeep import UPKEEP
from tools.seeded_faults.fault import Fault

FAULTS: tuple[Fault, ...] = (*EXACTLY_ONCE, *INTAKE, *DECODING, *LEDGER, *DEPLOYMENT, *UPKEEP)
