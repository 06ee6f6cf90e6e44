"""How stores are reached: endpoint and credentials, said once, in the words of each client. Pure.

Where nothing is said, each client takes the cloud's own way: environment, instance or workload identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from demux.storage.location import Scheme

_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """What the settings say of object stores, with the secrets themselves; never printed.

    Attributes:
        endpoint: URL of an S3 server other than Amazon's.
        region: of the bucket.
        access_key: id of the key.
        secret_key: the key.
        session_token: of short-lived keys.
        path_style: whether the bucket is in the path, not in the host's name; None: with an endpoint of its own.
        ca_file: PEM file of further certificate authorities.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style: bool | None = None
    ca_file: str | None = None

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
        if scheme is not Scheme.S3:
            return {}
        region = self.region or (_REGION if self.endpoint is not None else None)
        said = {
            "aws_endpoint_url": self.endpoint,
            "aws_region": region,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_session_token": self.session_token,
            "aws_virtual_hosted_style_request": "false" if self.is_path_style else "true",
        }
        return {name: value for name, value in said.items() if value is not None}

    def table_options(self, scheme: Scheme) -> dict[str, str]:
        """Return the storage options of `deltalake`."""
        options = {name.upper(): value for name, value in self.client_options(scheme).items()}
        return options | ({"AWS_ALLOW_HTTP": "true"} if options and self.is_plain_http else {})

    def spark_conf(self) -> Mapping[str, str]:
        """Return the properties by which Spark's own S3 client does the same; it shows keys redacted."""
        said = {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": self.region or (_REGION if self.endpoint is not None else None),
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
            "fs.s3a.session.token": self.session_token,
            "fs.s3a.path.style.access": "true" if self.is_path_style else None,
            "fs.s3a.connection.ssl.enabled": "false" if self.is_plain_http else None,
        }
        return {f"spark.hadoop.{name}": value for name, value in said.items() if value is not None}
