"""A job as it should be, and as the workspace has it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demux.core.settings.databricks import AccessLevel, PrincipalKind

# a job's settings as JSON of the Jobs API 2.2
JobJson = Mapping[str, Any]

# tag with the deployment's name: whose job it is
OWNER_TAG = "protobuf_demux"
# tag with the job's part: `all`, `bronze`, `001`, …
PART_TAG = "protobuf_demux_part"
# tag with what `root_tag` makes of the root: whose checkpoints it runs
ROOT_TAG = "protobuf_demux_root"


def root_tag(root: str) -> str:
    """Return 12 hex digits that stand for a root: a tag has no room for a path."""
    return hashlib.sha256(root.rstrip("/").encode()).hexdigest()[:12]


# kind and name
Principal = tuple[PrincipalKind, str]


@dataclass(frozen=True, slots=True)
class Permission:
    """What one principal may do with a job.

    Attributes:
        kind: what the principal is; the value is the field of the Permissions API.
        principal: its name there (for a service principal, the application id).
        level: what it may do.
    """

    kind: PrincipalKind
    principal: str
    level: AccessLevel

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """What permissions are sorted by."""
        return self.kind.value, self.principal, self.level.value


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it should be.

    Attributes:
        part: which of the deployment's jobs it is, unique in a deployment.
        settings: `JobSettings` of the Jobs API as JSON; a reference to another part's job is `${part:<part>}`.
        permissions: sorted, beside the owner's.
    """

    part: str
    settings: JobJson
    permissions: tuple[Permission, ...] = ()


@dataclass(frozen=True, slots=True)
class DeployedJob:
    """A job as the workspace has it.

    Attributes:
        job_id: its id there.
        part: which of the deployment's jobs it is, from its tag.
        settings: as the server gives them, its defaults included.
        permissions: beside the owner's, and without inherited ones.
        owner: who owns it; None where we may not see that.
        filled: what the server had added after our last write, from `filled_in`; None where that is not known.
    """

    job_id: int
    part: str
    settings: JobJson
    permissions: tuple[Permission, ...] = ()
    owner: Principal | None = None
    filled: JobJson | None = None


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A job with a name of ours that is not ours, and that is left alone.

    Attributes:
        job_id: its id.
        name: its name.
        deployment: whose it is by its tag; "" without a tag of ours.
    """

    job_id: int
    name: str
    deployment: str = ""


def wheel_folder(wheel_path: str, deployment: str) -> str:
    """Return the folder of one deployment's wheels: what is in it is ours to remove."""
    return f"{wheel_path.rstrip('/')}/{deployment}"
