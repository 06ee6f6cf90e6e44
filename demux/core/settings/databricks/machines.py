"""How the machines of a cluster are bought, cloud by cloud. The values are those of the Clusters API."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import Field

from demux.core.settings.databricks.values import Token
from demux.core.settings.types import Section

# what a machine may do, which no pool says
IDENTITIES = frozenset({"instance_profile", "service_account"})
FirstOnDemand = Annotated[int, Field(ge=0, le=100_000)]


class AwsAvailability(Enum):
    """Which machines AWS gives."""

    ON_DEMAND = "ON_DEMAND"
    SPOT = "SPOT"
    SPOT_WITH_FALLBACK = "SPOT_WITH_FALLBACK"


class AzureAvailability(Enum):
    """Which machines Azure gives."""

    ON_DEMAND = "ON_DEMAND_AZURE"
    SPOT = "SPOT_AZURE"
    SPOT_WITH_FALLBACK = "SPOT_WITH_FALLBACK_AZURE"


class GcpAvailability(Enum):
    """Which machines Google Cloud gives."""

    ON_DEMAND = "ON_DEMAND_GCP"
    PREEMPTIBLE = "PREEMPTIBLE_GCP"
    PREEMPTIBLE_WITH_FALLBACK = "PREEMPTIBLE_WITH_FALLBACK_GCP"


class AwsSettings(Section):
    """Machines of AWS."""

    availability: AwsAvailability | None = Field(
        default=None, description="ON_DEMAND, SPOT, or SPOT_WITH_FALLBACK: on demand where no spot machine is left."
    )
    first_on_demand: FirstOnDemand | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first."
    )
    spot_price_percent: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="Most that a spot machine may cost, in percent of one on demand."
    )
    zone: Token | None = Field(default=None, description="Availability zone, such as us-west-2a, or auto.")
    instance_profile: Annotated[str, Field(pattern=r"^arn:aws[\w-]*:iam::\d+:instance-profile/\S+$")] | None = Field(
        default=None, description="ARN of the instance profile, on dedicated clusters alone."
    )


class AzureSettings(Section):
    """Machines of Azure."""

    availability: AzureAvailability | None = Field(
        default=None,
        description="ON_DEMAND_AZURE, SPOT_AZURE, or SPOT_WITH_FALLBACK_AZURE: on demand where no spot is left.",
    )
    first_on_demand: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first; 1 or more."
    )
    spot_price: Annotated[float, Field(ge=-1)] | None = Field(
        default=None, description="Most dollars an hour for a spot machine; -1: up to the price on demand."
    )


class GcpSettings(Section):
    """Machines of Google Cloud."""

    availability: GcpAvailability | None = Field(
        default=None,
        description="ON_DEMAND_GCP, PREEMPTIBLE_GCP, or PREEMPTIBLE_WITH_FALLBACK_GCP: on demand where none is left.",
    )
    first_on_demand: FirstOnDemand | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first."
    )
    zone: Token | None = Field(default=None, description="Zone, or HA (highest availability) or AUTO.")
    service_account: Annotated[str, Field(pattern=r"^[^@\s{}$]+@[^@\s{}$]+$")] | None = Field(
        default=None, description="E-mail address of the machines' service account, on dedicated clusters alone."
    )


def given_keys(machines: AwsSettings | AzureSettings | GcpSettings) -> list[str]:
    """Return the keys that have a value."""
    return [name for name in type(machines).model_fields if getattr(machines, name) is not None]
