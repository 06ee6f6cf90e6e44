"""The Kafka offsets in a stream's checkpoint."""

from __future__ import annotations

from pathlib import Path

from bronze_ingest.kafka.checkpoint_offsets import records_in
from demux.core.storage.files import Storage


def test_a_batch_has_the_offsets_since_the_one_before_and_all_of_a_topic_that_came(tmp_path: Path) -> None:
    start = tmp_path / "sources" / "0"
    start.mkdir(parents=True)
    (start / "0").write_text('\0v1\n{"t":{"0":5,"1":0}}')
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text('v1\n{}\n{"t":{"0":7,"1":10}}\n-')
    (log / "1").write_text('v1\n{}\n{"t":{"0":7,"1":11},"u":{"0":4}}\n-')
    assert [records_in(Storage(), str(tmp_path), batch_id) for batch_id in (0, 1)] == [12, 5]
