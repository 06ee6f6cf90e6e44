"""Endpoint and credentials, said once, in the words of each client."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from demux.core.errors import SecretMissing
from demux.core.settings.store import StoreSettings, access_of
from demux.core.storage.access import StoreAccess
from demux.core.storage.location import Scheme

LOCAL = StoreAccess("http://127.0.0.1:7070", access_key="id", secret_key="hidden", session_token="token")


def test_what_is_said_reaches_the_client_the_tables_and_spark() -> None:
    assert LOCAL.client_options(Scheme.S3) == {
        "aws_endpoint_url": "http://127.0.0.1:7070",
        "aws_region": "us-east-1",
        "aws_access_key_id": "id",
        "aws_secret_access_key": "hidden",
        "aws_session_token": "token",
        "aws_virtual_hosted_style_request": "false",
    }
    assert LOCAL.table_options(Scheme.S3)["ALLOW_HTTP"] == "true"
    assert LOCAL.table_options(Scheme.S3)["AWS_SECRET_ACCESS_KEY"] == "hidden"
    assert LOCAL.spark_conf() == {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:7070",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": "id",
        "spark.hadoop.fs.s3a.secret.key": "hidden",
        "spark.hadoop.fs.s3a.session.token": "token",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


def test_where_nothing_is_said_the_cloud_decides() -> None:
    assert StoreAccess().client_options(Scheme.S3) == StoreAccess().table_options(Scheme.S3) == {}
    assert StoreAccess().spark_conf() == {}


def test_keys_of_one_cloud_reach_no_other_one() -> None:
    access = StoreAccess(
        access_key="id", secret_key="key", account_key="account", sas_token="sas", service_account='{"type": "…"}'
    )
    assert {scheme: set(access.client_options(scheme).values()) for scheme in Scheme} == {
        Scheme.FILE: set(),
        Scheme.MOUNT: set(),
        Scheme.S3: {"id", "key"},
        Scheme.AZURE: {"account", "sas"},
        Scheme.GCS: {'{"type": "…"}'},
        Scheme.OTHER: set(),
    }
    assert access.table_options(Scheme.AZURE)["AZURE_STORAGE_ACCOUNT_KEY"] == "account"


def test_a_secret_is_in_no_text() -> None:
    assert repr(LOCAL) == (
        "StoreAccess(endpoint='http://127.0.0.1:7070', region=None, path_style=None, unity_catalog=None, ca_file=None, "
        "timeout_s=120.0)"
    )


def test_settings_refer_to_secrets_which_are_looked_up() -> None:
    store = StoreSettings(access_key="secret:env/ID", secret_key="secret:env/KEY", region="eu-west-1")
    assert access_of(store, {"ID": "id", "KEY": "k"}, "s3://b/root") == StoreAccess(
        region="eu-west-1", access_key="id", secret_key="k"
    )
    with pytest.raises(SecretMissing):
        access_of(store, {"ID": "id"}, "s3://b/root")


@pytest.mark.parametrize(
    "said",
    [
        {"access_key": "secret:env/ID"},
        {"secret_key": "secret:env/KEY"},
        {"session_token": "secret:env/TOKEN"},
        {"access_key": "AKIA", "secret_key": "secret:env/KEY"},
        {"account_key": "AKIA"},
        {"account_key": "secret:env/KEY", "service_account": "secret:env/JSON"},
        {"endpoint": "http://user:password@host"},
    ],
)
def test_half_a_key_and_a_secret_in_the_settings_are_refused(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StoreSettings.model_validate(said)
