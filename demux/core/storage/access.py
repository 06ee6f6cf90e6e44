"""How stores are reached: endpoint and credentials, said once, in the words of each client. Pure.

Where nothing is said, each client takes the cloud's own way: environment, instance or workload identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from demux.core.storage.location import Scheme
from demux.core.storage.unity_catalog import UnityCatalogPath

_REGION = "us-east-1"
_CONNECT_TIMEOUT = "5s"
_ENDPOINT = "spark.hadoop.fs.s3a.endpoint"
_REGION_OF = "spark.hadoop.fs.s3a.endpoint.region"
_ACCESS_KEY = "spark.hadoop.fs.s3a.access.key"
_SECRET_KEY = "spark.hadoop.fs.s3a.secret.key"
_SESSION_TOKEN = "spark.hadoop.fs.s3a.session.token"
_PATH_STYLE = "spark.hadoop.fs.s3a.path.style.access"


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """What the settings say of object stores, with the secrets themselves; never printed.

    Attributes:
        endpoint: URL of a server other than the cloud's own.
        region: of an S3 bucket.
        access_key: id of an S3 key.
        secret_key: the S3 key.
        session_token: of short-lived S3 keys.
        path_style: whether the bucket is in the path, not in the host's name; None: with an endpoint of its own. S3.
        account_key: of an Azure storage account.
        sas_token: shared access signature of an Azure storage account or container.
        service_account: a service account's key of GCS, JSON.
        unity_catalog: the path whose credentials Unity Catalog gives out, in place of keys.
        ca_file: PEM file of further certificate authorities.
        timeout_s: how long a request and its answer may take; files are read in parts of 32 MiB at most.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style: bool | None = None
    account_key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    service_account: str | None = field(default=None, repr=False)
    unity_catalog: UnityCatalogPath | None = None
    ca_file: str | None = None
    timeout_s: float = 120.0

    @property
    def is_path_style(self) -> bool:
        """Whether the bucket is in the path of a request."""
        return self.endpoint is not None if self.path_style is None else self.path_style

    @property
    def is_plain_http(self) -> bool:
        """Whether requests are not encrypted."""
        return self.endpoint is not None and self.endpoint.lower().startswith("http://")

    def client_options(self, scheme: Scheme) -> dict[str, str]:
        """Return the options of the Rust crate `object_store`, which `obstore` and `deltalake` have in common."""
        match scheme:
            case Scheme.S3:
                options = self._s3_options()
            case Scheme.AZURE:
                options = {
                    "azure_storage_endpoint": self.endpoint,
                    "azure_storage_account_key": self.account_key,
                    "azure_storage_sas_key": self.sas_token,
                }
            case Scheme.GCS:
                options = {"google_base_url": self.endpoint, "google_service_account_key": self.service_account}
            case _:
                options = {}
        return {name: value for name, value in options.items() if value is not None}

    def _s3_options(self) -> dict[str, str | None]:
        region = self.region or (_REGION if self.endpoint is not None else None)
        is_said = self.path_style is not None or self.endpoint is not None
        style = None if not is_said else "false" if self.is_path_style else "true"
        return {
            "aws_endpoint_url": self.endpoint,
            "aws_region": region,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_session_token": self.session_token,
            "aws_virtual_hosted_style_request": style,
        }

    def table_options(self, scheme: Scheme) -> dict[str, str]:
        """Return the storage options of `deltalake`."""
        options = {name.upper(): value for name, value in self.client_options(scheme).items()}
        return options | ({"ALLOW_HTTP": "true"} if options and self.is_plain_http else {})

    @property
    def timeouts(self) -> dict[str, str]:
        """The options of the same crate that say how long requests may take."""
        return {"timeout": f"{self.timeout_s:g}s", "connect_timeout": _CONNECT_TIMEOUT}

    def spark_conf(self) -> Mapping[str, str]:
        """Return the properties by which Spark's own S3 client does the same; it shows keys redacted.

        Spark's connectors of Azure and GCS have properties of their own (`spark.conf`).
        """
        properties = {
            _ENDPOINT: self.endpoint,
            _REGION_OF: self.region or (_REGION if self.endpoint is not None else None),
            _ACCESS_KEY: self.access_key,
            _SECRET_KEY: self.secret_key,
            _SESSION_TOKEN: self.session_token,
            _PATH_STYLE: "true" if self.is_path_style else None,
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false" if self.is_plain_http else None,
        }
        return {name: value for name, value in properties.items() if value is not None}
