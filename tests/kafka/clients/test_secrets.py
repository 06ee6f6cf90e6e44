"""Planted secrets of every kind are used, and then looked for in everything that is written, printed or kept."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate
from deltalake import DeltaTable

from demux.core.settings.loading.yaml_positions import text_of
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving as workspace_serving
from tests.fakes.workspace.secrets import Secrets
from tests.support.flow.process import Said, run
from tests.support.flow.root import rows, wrapper
from tests.support.kafka.pipeline import classes, send
from tests.support.kafka.records import make_topic
from tools.servers.broker import Broker
from tools.servers.listeners import Listener
from tools.servers.registry import Registry
from tools.servers.tls.security import Secured

EVENT = 'syntax = "proto3";\nmessage Event { string name = 1; }\n'
# stands in options beside the passwords, and goes all the ways that they go
CLIENT, TOPIC = "planted-client-7Hq2", "planted-topic-4Zx9"
STORE, TOKEN = "planted-store-5Jk1", "planted-token-8Wd2"
WRONG_KAFKA, WRONG_REGISTRY = "planted-wrong-6Mf3", "planted-wrong-3Bn7"
LOGGING = """
rootLogger.level = info
# else Spark takes it for a shell, which says little
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class Left:
    """What the commands left behind: what they said, and the folder of everything they wrote."""

    refused: Said
    shut_out: Said
    curious: Said
    process: Said
    root: Path
    secrets: Mapping[str, str]

    def said(self) -> dict[str, str]:
        ends = {"refused": self.refused, "shut out": self.shut_out, "curious": self.curious, "process": self.process}
        return {f"{name} {part}": getattr(end, part) for name, end in ends.items() for part in ("out", "err")}

    def written(self) -> dict[str, bytes]:
        """The content of every file, by path below the root."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}

    def tables(self) -> dict[str, str]:
        """Every row of every Delta table, which a file may hold packed; by path below the root."""
        found = [log.parent for log in self.root.rglob("_delta_log")]
        return {path.relative_to(self.root).as_posix(): str(rows_of(path)) for path in found}

    def places(self, needle: str) -> set[str]:
        """Where the text is, as it is or in base64."""
        forms = (needle, base64.b64encode(needle.encode()).decode().rstrip("="))
        texts = {**self.said(), **self.tables()}
        return {place for place, text in texts.items() if any(form in text for form in forms)} | {
            place for place, content in self.written().items() if any(form.encode() in content for form in forms)
        }


def rows_of(table: Path) -> object:
    return rows(table) if "silver" in table.parts else DeltaTable(table).to_pyarrow_table().to_pylist()


@pytest.fixture(scope="module")
def left(
    secure_broker: Broker, secure_registry: Registry, security: Secured, tmp_path_factory: pytest.TempPathFactory
) -> Left:
    folder = tmp_path_factory.mktemp("secrets")
    passwords = security.security.passwords
    secrets = {"kafka": passwords["admin"], "registry": passwords["alice"], "store": STORE, "token": TOKEN}
    pair = f"alice:{passwords['alice']}"
    schema_id = registered(secure_registry, security, pair)
    make_topic(secure_broker.bootstrap, TOPIC)
    payload = classes(EVENT)("Event")(name="ann").SerializeToString()
    send(secure_broker.bootstrap, TOPIC, [wrapper("chess", schema_id, payload), b""])
    held = {("team", "registry"): passwords["alice"].encode(), ("team", "store"): STORE.encode()}
    with workspace_serving(FakeWorkspace(TOKEN, Secrets(held))) as workspace:
        environ = {**workspace.environ, "HOME": str(folder), "RIGHT": passwords["admin"], "WRONG": WRONG_KAFKA}
        (folder / "kafka").write_text(passwords["admin"] + "\n")
        (folder / "registry").write_text(WRONG_REGISTRY)
        held_by_workspace = "secret:databricks/team/registry"
        files = [
            written(folder, name, secure_broker, secure_registry, security, kafka, password)
            for name, kafka, password in (
                ("refused", "secret:env/WRONG", held_by_workspace),
                ("shut_out", "secret:env/RIGHT", f"secret:file/{folder}/registry"),
                ("curious", f"secret:file/{folder}/kafka", held_by_workspace),
            )
        ]
        # the processes of the tests have an environment of their own
        process = run(
            [
                "env",
                *(f"{name}={value}" for name, value in environ.items()),
                *(sys.executable, "-m", "tests.support.kafka.leaking"),
                *map(str, files),
            ]
        )
    assert process.code == 0, process.err
    refused, shut_out, curious = (Said(**said) for said in json.loads(process.out))
    return Left(
        refused,
        shut_out,
        curious,
        process,
        folder / "root",
        {**secrets, "pair": pair, "wrong kafka": WRONG_KAFKA, "wrong registry": WRONG_REGISTRY},
    )


def registered(registry: Registry, security: Secured, pair: str) -> int:
    options = {"url": registry.url, "basic.auth.user.info": pair, "ssl.ca.location": str(security.authority.trust.pem)}
    with SchemaRegistryClient(options) as client:
        schema_id: int = client.register_schema("secrets-chess", Schema(EVENT, "PROTOBUF"))
    return schema_id


def written(
    folder: Path,
    name: str,
    broker: Broker,
    registry: Registry,
    security: Secured,
    kafka: str,
    registry_password: str,
) -> Path:
    """A settings file; Spark logs at INFO and keeps its event log below the root, where all is looked through."""
    authority = security.authority.trust.pem
    own = security.clients["admin"].pem.read_bytes()
    key, certificate = load_pem_private_key(own, None), load_pem_x509_certificate(own)
    assert isinstance(key, EllipticCurvePrivateKey)
    store = folder / "own.p12"
    encryption = BestAvailableEncryption(STORE.encode())
    store.write_bytes(serialize_key_and_certificates(b"own", key, certificate, None, encryption))
    (folder / "log4j2.properties").write_text(LOGGING)
    (folder / "root" / "events").mkdir(parents=True, exist_ok=True)
    settings = {
        "root": str(folder / "root"),
        "source": {"kind": "kafka"},
        "kafka": {
            "bootstrap_servers": broker.address(Listener.SASL_SSL),
            "topics": [TOPIC],
            "security_protocol": "SASL_SSL",
            "truststore": str(authority),
            "keystore": str(store),
            "keystore_password": "secret:databricks/team/store",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": "admin",
            "password": kafka,
            "options": {"client.id": CLIENT},
        },
        "registry": {
            "url": registry.url,
            "ca_file": str(authority),
            "username": "alice",
            "password": registry_password,
            "retries": 0,
        },
        "run": {"retries": 0},
        "spark": {
            "master": "local[2]",
            "conf": {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": (folder / "root" / "events").as_uri(),
                "spark.eventLog.compress": "false",
                "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
            },
        },
    }
    file = folder / f"{name}.yml"
    file.write_text(text_of(settings))
    return file


def test_the_secrets_were_used(left: Left) -> None:
    assert (left.refused.code, left.shut_out.code, left.curious.code) == (2, 3, 0), left.curious.err
    assert [row["name"] for row in rows(left.root / "silver" / "chess")] == ["ann"]
    assert "The broker at 127.0.0.1" in left.refused.err
    assert "refused the login of user admin by SCRAM-SHA-512" in left.refused.err
    assert "REGISTRY_REFUSED" in left.shut_out.out
    assert "does not accept the user 'alice'" in left.shut_out.out


def test_what_is_no_secret_is_found_wherever_a_secret_could_be(left: Left) -> None:
    client = left.places(CLIENT)
    assert {"logs/spark.log", "curious out"} <= client
    topic = left.places(TOPIC)
    assert {"logs/spark.log", "curious out", "bronze", "quarantine", "silver/chess"} <= topic
    assert any(place.startswith("events/") for place in topic)
    assert any(place.startswith("checkpoints/bronze/offsets/") for place in topic)
    assert any("INFO" in line for line in left.written()["logs/spark.log"].decode().splitlines())


def test_no_secret_is_found_anywhere(left: Left) -> None:
    found = {name: left.places(secret) for name, secret in left.secrets.items()}
    assert found == {name: set() for name in left.secrets}
