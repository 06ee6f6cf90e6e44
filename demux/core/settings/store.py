"""Settings of object stores: said once, for our own client and for Spark's."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from demux.core.secrets import FORMS, resolve
from demux.core.settings.types import Location, Secret, Section, Text, Url, rule
from demux.core.storage.access import StoreAccess


class StoreSettings(Section):
    """How the object store of a root is reached."""

    endpoint: Url | None = Field(
        default=None, description="URL of an S3 server, such as http://127.0.0.1:7070. Default: Amazon's own."
    )
    region: Text | None = Field(
        default=None, description="Region of the bucket. Default: what the environment says; us-east-1 with `endpoint`."
    )
    access_key: Secret | None = Field(
        default=None,
        description=f"Id of the access key: {FORMS}. Default: the environment, or the instance's own identity.",
    )
    secret_key: Secret | None = Field(default=None, description=f"The access key itself: {FORMS}.")
    session_token: Secret | None = Field(default=None, description=f"Token of a short-lived access key: {FORMS}.")
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is in the path of a request, not in the host's name. Default: with `endpoint`.",
    )
    ca_file: Location | None = Field(
        default=None,
        description="PEM file of further certificate authorities that `endpoint` may have. Spark's own "
        "client takes those of its Java.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> StoreSettings:
        if (self.access_key is None) is not (self.secret_key is None):
            raise rule("store.access_key and store.secret_key go together")
        if self.session_token is not None and self.access_key is None:
            raise rule("store.session_token needs store.access_key")
        return self


def access_of(store: StoreSettings, environ: Mapping[str, str]) -> StoreAccess:
    """Return the endpoint and the credentials, with the secrets that the settings refer to.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """
    access_key, secret_key, session_token = (
        None if reference is None else resolve(reference, environ)
        for reference in (store.access_key, store.secret_key, store.session_token)
    )
    return StoreAccess(
        endpoint=store.endpoint,
        region=store.region,
        access_key=access_key,
        secret_key=secret_key,
        session_token=session_token,
        path_style=store.path_style,
        ca_file=store.ca_file,
    )
