from __future__ import annotations

import json
from pathlib import Path

from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import StreamCheckpoint, read_checkpoint


def test_a_folder_that_is_not_there_is_no_checkpoint(tmp_path: Path) -> None:
    found = read_checkpoint(Storage(), f"{tmp_path}/checkpoint")
    assert (found, found.unfinished) == (StreamCheckpoint(None, -1, -1), None)


def test_a_checkpoint_says_which_batch_was_begun_and_which_was_done(tmp_path: Path) -> None:
    for part, batches in (("offsets", (9, 10, 11)), ("commits", (9, 10))):
        (tmp_path / part).mkdir()
        for batch in batches:
            (tmp_path / part / str(batch)).write_text("v1")
            # what Hadoop leaves beside each file
            (tmp_path / part / f".{batch}.crc").write_text("")
    (tmp_path / "metadata").write_text(json.dumps({"id": "the query"}))
    found = read_checkpoint(Storage(), str(tmp_path))
    assert (found, found.unfinished) == (StreamCheckpoint("the query", 11, 10), 11)
