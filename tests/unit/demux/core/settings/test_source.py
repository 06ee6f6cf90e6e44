"""Options of Kafka's consumer that pass, and those that would change what the source promises."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from demux.core.settings.source import KafkaSettings


def mistake(**options: str) -> str:
    with pytest.raises(ValidationError) as caught:
        KafkaSettings.model_validate({"options": {name.replace("__", "."): value for name, value in options.items()}})
    (error,) = caught.value.errors()
    return error["msg"]


def test_an_option_that_changes_no_record_passes() -> None:
    options = {"fetch.max.bytes": "1", "group.id": "g", "isolation.level": "read_uncommitted", "retries": "1"}
    assert KafkaSettings(options=options).options == options


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("bootstrap.servers", "set kafka.bootstrap_servers"),
        ("security.protocol", "set kafka.security_protocol"),
        ("auto.offset.reset", "set kafka.starting_offsets"),
        ("enable.auto.commit", "leave it out, the checkpoint knows what was read"),
        ("interceptor.classes", "leave it out, records are taken as they are"),
        ("key.deserializer", "leave it out, keys are taken as bytes"),
        ("value.deserializer", "leave it out, values are taken as bytes"),
    ],
)
def test_what_the_source_decides_itself_is_refused_with_what_to_do(name: str, remedy: str) -> None:
    assert mistake(**{name.replace(".", "__"): "x"}) == f"Value error, not an option to set here: {name} ({remedy})"


@pytest.mark.parametrize("name", ["kafka.fetch.max.bytes", "maxOffsetsPerTrigger"])
def test_an_option_under_a_name_that_the_consumer_does_not_know_is_refused(name: str) -> None:
    found = mistake(**{name.replace(".", "__"): "1"})
    assert found == f"Value error, {name}: write the name as Kafka's consumer has it, such as fetch.max.bytes"
