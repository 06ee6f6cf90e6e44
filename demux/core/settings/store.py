"""Settings of object stores, for our own client and for Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pydantic import Field, model_validator

from demux.core.secrets import FORMS, resolve
from demux.core.settings.types import Location, Secret, Section, Text, Url, rule
from demux.core.storage.access import StoreAccess
from demux.core.storage.location import Scheme, locate
from demux.core.storage.unity_catalog import UnityCatalogPath


class CredentialSource(Enum):
    """Who gives out the credentials of a store."""

    CLOUD = "cloud"
    UNITY_CATALOG = "unity-catalog"


class StoreSettings(Section):
    """How the object store of a root is reached: S3, Azure or GCS, as the root says."""

    endpoint: Url | None = Field(
        default=None,
        description="URL of a server other than the cloud's own, such as http://127.0.0.1:7070 (S3), or "
        "http://127.0.0.1:10000/ACCOUNT (Azure). Default: the cloud's own.",
    )
    region: Text | None = Field(
        default=None,
        description="Region of an S3 bucket. Default: what the environment says; us-east-1 with `endpoint`.",
    )
    credentials: CredentialSource = Field(
        default=CredentialSource.CLOUD,
        description="Who gives out the credentials: `cloud`, the keys below or the identity of this machine; or "
        "`unity-catalog`, short-lived ones of the external location that has the root (S3 and Azure), by the login of "
        "databricks-sdk. Spark has its own of Unity Catalog then.",
    )
    access_key: Secret | None = Field(
        default=None,
        description=f"Id of an S3 access key: {FORMS}. Default: the environment, or the instance's own identity.",
    )
    secret_key: Secret | None = Field(default=None, description=f"The S3 access key itself: {FORMS}.")
    session_token: Secret | None = Field(default=None, description=f"Token of a short-lived S3 access key: {FORMS}.")
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is in the path of a request, not in the host's name. Default: with `endpoint`.",
    )
    account_key: Secret | None = Field(
        default=None,
        description=f"Key of an Azure storage account: {FORMS}. Default: the environment, or the instance's own.",
    )
    sas_token: Secret | None = Field(
        default=None, description=f"Shared access signature of an Azure storage account or container: {FORMS}."
    )
    service_account: Secret | None = Field(
        default=None,
        description=f"Key of a GCS service account, JSON: {FORMS}. Default: the environment, or the instance's own.",
    )
    ca_file: Location | None = Field(
        default=None,
        description="PEM file of further certificate authorities that `endpoint` may have. Spark's own "
        "client takes those of its Java.",
    )

    mounts: Mapping[Text, Location] = Field(
        default={},
        description="Folders of every machine where another file system is mounted, by the prefix that Spark has for "
        "it, such as hdfs://nameservice/lake: /mnt/lake. A cluster of Databricks has those of its workspace.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> StoreSettings:
        if (self.access_key is None) is not (self.secret_key is None):
            raise rule("store.access_key and store.secret_key go together")
        if self.session_token is not None and self.access_key is None:
            raise rule("store.session_token needs store.access_key")
        kinds = {
            "S3": (self.access_key,),
            "Azure": (self.account_key, self.sas_token),
            "GCS": (self.service_account,),
        }
        given = [cloud for cloud, keys in kinds.items() if any(key is not None for key in keys)]
        if len(given) > 1:
            raise rule(f"store has credentials of {' and of '.join(given)}; a root is in one of them")
        if given and self.credentials is CredentialSource.UNITY_CATALOG:
            raise rule(f"store has credentials of {given[0]}, and store.credentials is unity-catalog")
        return self


def has_keys(store: StoreSettings) -> bool:
    """Return whether the settings have credentials of a store."""
    return any((store.access_key, store.account_key, store.sas_token, store.service_account))


def needs_key(store: StoreSettings, root: str) -> bool:
    """Return whether a machine without an identity of the cloud reaches the root by a key alone, and there is none."""
    return locate(root).scheme is Scheme.GCS and not has_keys(store)


def takes_unity_catalog(store: StoreSettings, root: str) -> bool:
    """Return whether a machine without an identity of the cloud reaches the root by Unity Catalog's credentials."""
    return locate(root).scheme in {Scheme.S3, Scheme.AZURE} and not has_keys(store)


def access_of(store: StoreSettings, environ: Mapping[str, str], root: str) -> StoreAccess:
    """Return the endpoint and the credentials, with the secrets that the settings refer to.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """

    def secret(reference: str | None) -> str | None:
        return None if reference is None else resolve(reference, environ)

    by_catalog = store.credentials is CredentialSource.UNITY_CATALOG and locate(root).scheme in (
        Scheme.S3,
        Scheme.AZURE,
        Scheme.GCS,
    )
    return StoreAccess(
        unity_catalog=UnityCatalogPath(locate(root).url) if by_catalog else None,
        endpoint=store.endpoint,
        region=store.region,
        access_key=secret(store.access_key),
        secret_key=secret(store.secret_key),
        session_token=secret(store.session_token),
        path_style=store.path_style,
        account_key=secret(store.account_key),
        sas_token=secret(store.sas_token),
        service_account=secret(store.service_account),
        ca_file=store.ca_file,
    )
