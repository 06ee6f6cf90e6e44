"""Settings of what comes in: the source, Kafka, the archive, the envelope and its framing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from demux.core.secrets import FORMS, is_reference, is_secret_option
from demux.core.settings.types import Location, Secret, Section, Text, Url, epoch_ms, rule


class SourceKind(Enum):
    """Where the wrappers come from."""

    DELTA = "delta"
    KAFKA = "kafka"
    FILES = "files"


class SecurityProtocol(Enum):
    """How a Kafka client talks to the broker; the values are Kafka's own."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(Enum):
    """How a Kafka client authenticates; the values are Kafka's own."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class Compression(Enum):
    """How the producer packs batches of records; the values are Kafka's own."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class ArchiveFormat(Enum):
    """How records are laid out in an archived file."""

    DELIMITED = "delimited"
    PARQUET = "parquet"
    NDJSON = "ndjson"


class CleanUp(Enum):
    """What becomes of an archived file once its records are in bronze."""

    KEEP = "keep"
    ARCHIVE = "archive"
    DELETE = "delete"


class WrapperFraming(Enum):
    """The frame before the wrapper in a record's value."""

    BARE = "bare"
    CONFLUENT = "confluent"


class PayloadFraming(Enum):
    """Where a payload's schema id is."""

    FIELD = "field"
    CONFLUENT = "confluent"
    HEADER = "header"


# what the source decides itself, each with what to set in its place
_OWN_OPTIONS: Mapping[str, str] = {
    "bootstrap.servers": "set kafka.bootstrap_servers",
    "security.protocol": "set kafka.security_protocol",
    "auto.offset.reset": "set kafka.starting_offsets",
    "enable.auto.commit": "leave it out, the checkpoint knows what was read",
    "interceptor.classes": "leave it out, records are taken as they are",
    "key.deserializer": "leave it out, keys are taken as bytes",
    "value.deserializer": "leave it out, values are taken as bytes",
}


def _options(options: Mapping[str, str]) -> Mapping[str, str]:
    if own := [f"{name} ({_OWN_OPTIONS[name]})" for name in sorted(options) if name in _OWN_OPTIONS]:
        raise ValueError(f"not an option to set here: {', '.join(own)}")
    if foreign := sorted(name for name in options if name.startswith("kafka.") or name != name.lower()):
        raise ValueError(f"{', '.join(foreign)}: write the name as Kafka's consumer has it, such as fetch.max.bytes")
    if literal := sorted(key for key, value in options.items() if is_secret_option(key) and not is_reference(value)):
        raise ValueError(f"{', '.join(literal)} must be {FORMS}, never the secret itself")
    return options


def _is_offsets(text: str) -> bool:
    try:
        topics = json.loads(text)
    except ValueError:
        return False
    return isinstance(topics, dict) and bool(topics) and all(_are_partitions(each) for each in topics.values())


def _are_partitions(offsets: object) -> bool:
    return isinstance(offsets, dict) and all(
        re.fullmatch("[0-9]{1,9}", partition) and type(offset) is int and -2 <= offset < 2**63
        for partition, offset in offsets.items()
    )


class SourceSettings(Section):
    """Where the wrappers come from."""

    kind: SourceKind = Field(
        default=SourceKind.DELTA,
        description="delta: the table under `path`. kafka: the topics under `kafka`. files: the `archive` alone. "
        "With delta and kafka, an archive that is named is read along.",
    )
    path: Location | None = Field(default=None, description="Delta table of wrapper bytes. Default: <root>/source.")
    max_files_per_batch: int | None = Field(
        default=None,
        ge=1,
        description="Most files of the Delta source in one micro-batch of bronze. Default: Delta's own limit.",
    )


class KafkaSettings(Section):
    """The broker and the topics; the producer uses them as well."""

    bootstrap_servers: Text = Field(default="127.0.0.1:9092", description="host:port of a broker, or several.")
    topics: tuple[Text, ...] = Field(
        default=("events",), description="Topics to read; the producer sends to the first."
    )
    topic_pattern: Text | None = Field(
        default=None,
        description="Regular expression of topics to read, in place of `topics`; Java and Python must both read it.",
    )
    starting_offsets: Text = Field(
        default="earliest",
        description='Where the very first run begins: earliest, latest, or {"topic": {"0": 23}} (-2: earliest, -1: '
        "latest).",
    )
    starting_timestamp: Text | None = Field(
        default=None,
        description="The very first run begins with records from this time on, such as 2026-01-31T00:00:00Z; "
        "comes before `starting_offsets`. A partition without such records begins at its end.",
    )
    max_offsets_per_batch: int | None = Field(
        default=None,
        ge=1,
        description="Most records of Kafka in one micro-batch of bronze. Default: all that are there.",
    )
    min_partitions: int | None = Field(
        default=None, ge=1, description="Least Spark tasks that read; default: one for each partition of the topics."
    )
    security_protocol: SecurityProtocol = Field(
        default=SecurityProtocol.PLAINTEXT, description="How to talk to the broker."
    )
    truststore: Location | None = Field(
        default=None,
        description="File of the certificate authorities to trust: .pem, .p12 or .jks, on every machine that reads. "
        "Default: those that Java trusts.",
    )
    truststore_password: Secret | None = Field(default=None, description=f"Its password: {FORMS}.")
    keystore: Location | None = Field(
        default=None, description="File with our certificate and key, for brokers that ask for one: .pem, .p12 or .jks."
    )
    keystore_password: Secret | None = Field(default=None, description=f"Its password: {FORMS}.")
    key_password: Secret | None = Field(default=None, description=f"The key's own password: {FORMS}.")
    sasl_mechanism: SaslMechanism | None = Field(default=None, description="How to log in, for SASL protocols.")
    username: Text | None = Field(default=None, description="User for PLAIN and SCRAM, client id for OAUTHBEARER.")
    password: Secret | None = Field(
        default=None, description=f"Password for PLAIN and SCRAM, client secret for OAUTHBEARER: {FORMS}."
    )
    token_url: Url | None = Field(default=None, description="Token endpoint for OAUTHBEARER.")
    token_scope: Text | None = Field(default=None, description="Scope to ask the token endpoint for.")
    connect_timeout_s: float = Field(
        default=10.0, ge=1, le=600, description="Seconds until a broker that does not answer is an error."
    )
    compression: Compression = Field(default=Compression.LZ4, description="How the producer packs records.")
    options: Annotated[Mapping[str, str], AfterValidator(_options)] = Field(
        default={},
        description="Any other option of Kafka's consumer, such as fetch.max.bytes: 1000000. Values may be secret:…",
    )

    @model_validator(mode="after")
    def _consistent(self) -> KafkaSettings:
        if self.starting_timestamp is not None and epoch_ms(self.starting_timestamp) is None:
            raise rule("starting_timestamp must be a time since 1970 with a zone, such as 2026-01-31T00:00:00Z")
        if self.starting_offsets not in {"earliest", "latest"} and not _is_offsets(self.starting_offsets):
            raise rule('starting_offsets must be earliest, latest or {"topic": {"0": 23}}')
        sasl = self.security_protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}
        if sasl and self.sasl_mechanism is None and "sasl.mechanism" not in self.options:
            raise rule(f"security_protocol {self.security_protocol.value} needs sasl_mechanism")
        if self.sasl_mechanism is not None and not sasl:
            raise rule("sasl_mechanism needs security_protocol SASL_SSL or SASL_PLAINTEXT")
        if (
            self.sasl_mechanism is not None
            and "sasl.jaas.config" not in self.options
            and (self.username is None or self.password is None)
        ):
            raise rule(f"sasl_mechanism {self.sasl_mechanism.value} needs username and password")
        if self.sasl_mechanism is SaslMechanism.OAUTHBEARER and self.token_url is None:
            raise rule("sasl_mechanism OAUTHBEARER needs token_url")
        return self


class ArchiveSettings(Section):
    """A folder of archived wrapper records, read along with the source."""

    path: Location | None = Field(default=None, description="Folder or URI of archived files. Default: none.")
    format: ArchiveFormat = Field(
        default=ArchiveFormat.DELIMITED,
        description="delimited: length-delimited messages. parquet: a BINARY column `value`. ndjson: one JSON object a "
        "line, base64 under `value`.",
    )
    pattern: Text | None = Field(default=None, description="Glob of the file names to read. Default: all files.")
    max_files_per_batch: int = Field(
        default=10, ge=1, description="Most archived files in one micro-batch, so that live records are not held up."
    )
    clean: CleanUp = Field(
        default=CleanUp.KEEP,
        description="What becomes of a file once it is in bronze. archive: moved below `clean_path`.",
    )
    clean_path: Location | None = Field(default=None, description="Where `clean: archive` moves files.")

    @model_validator(mode="after")
    def _consistent(self) -> ArchiveSettings:
        if self.clean is CleanUp.ARCHIVE and self.clean_path is None:
            raise rule("clean: archive needs clean_path")
        return self


class WrapperSettings(Section):
    """The envelope around a payload; the default is proto/demux/wrapper.proto."""

    proto: Location | None = Field(default=None, description="The .proto file of the envelope. Default: our own.")
    message: Text | None = Field(
        default=None, description="Full name of the envelope's message. Default: the first of the file."
    )
    game_field: Text = Field(
        default="game_name",
        description="Field that holds the game: a string, an integer or an enum. Dotted when nested.",
    )
    schema_id_field: Text | None = Field(
        default="schema_id", description="Integer field that holds the schema id; null where the envelope has none."
    )
    payload_field: Text = Field(default="payload", description="Bytes field that holds the payload.")


class FramingSettings(Section):
    """Where schema ids are; never guessed."""

    wrapper: WrapperFraming = Field(
        default=WrapperFraming.BARE,
        description="bare: the record's value is the wrapper. confluent: magic byte, id and message indexes are "
        "before it.",
    )
    payload: PayloadFraming = Field(
        default=PayloadFraming.FIELD,
        description="field: the id is the wrapper's schema_id_field, the payload is bare. confluent: magic byte, id "
        "and message indexes are before the payload. header: they are in the record's header __value_schema_id.",
    )
