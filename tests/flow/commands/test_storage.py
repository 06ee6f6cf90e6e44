"""A disk that is full or refuses: a clear error, and after the repair the next run loses nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.flow import process
from tests.support.flow.process import Command
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]

# more than Spark's own largest file, which it copies when it starts
_LIMIT_BYTES = 33_000_000
_REMEDY = "Free space or grant write permission on the root, then run the same command again; nothing is lost."


# the operating system refuses to let any file grow beyond the limit, as a full disk does; also for root
_NO_LARGE_FILES = ("sh", "-c", f'ulimit -f {_LIMIT_BYTES // 512} && exec "$@"', "sh")


def test_a_disk_that_is_full_stops_bronze_with_a_clear_error_and_nothing_is_lost(root: Root) -> None:
    # random bytes: no compression makes them fit
    small, large = b"", random.Random(1).randbytes(_LIMIT_BYTES)
    root.send([wrapper("chess", 1, small), wrapper("chess", 1, large)])
    said = process.run([*_NO_LARGE_FILES, process.DEMUX, "ingest", "--root", str(root.folder)])
    assert said.code == 4
    assert said.err.startswith("STORAGE_FAILED The storage refused to work (File too large): ")
    assert said.err.endswith(f"\n{_REMEDY}\n")
    assert "Traceback" not in said.out + said.err
    assert root.bronze() == []

    root.workplace().ingest()
    assert [(row["record_id"], row["payload"]) for row in root.bronze()] == [("t/0/0", small), ("t/0/1", large)]


def test_a_folder_that_cannot_be_made_stops_its_games_and_the_run_after_the_repair_completes_them(
    taken_in: Root, done: Root, copy: Copy, command: Command
) -> None:
    root = copy(taken_in)
    # a file in the folder's place refuses everybody, root too
    (root.folder / "silver").write_text("in the way")
    said = command("run", "--root", str(root.folder))
    assert said.code == 3
    assert "failed: chess" in said.out
    assert "STORAGE_FAILED The storage refused to work (" in said.out
    assert _REMEDY in said.out

    (root.folder / "silver").unlink()
    assert command("run", "--root", str(root.folder)).code == 0
    assert root.everything() == done.everything()


def test_a_quarantine_that_cannot_be_written_loses_no_bad_row(
    sent: Root, done: Root, copy: Copy, command: Command
) -> None:
    root = copy(sent)
    (root.folder / "quarantine").write_text("in the way")
    said = command("ingest", "--root", str(root.folder))
    assert said.code == 4
    assert said.err.startswith("STORAGE_FAILED The storage refused to work (")
    # nothing of the batch is in bronze before all its files are written
    assert root.bronze() == []

    (root.folder / "quarantine").unlink()
    assert command("run", "--root", str(root.folder)).code == 0
    assert root.everything() == done.everything()


def test_a_root_that_cannot_be_made_is_said_before_anything_starts(root: Root, command: Command) -> None:
    file = root.folder.parent / "file"
    file.write_text("in the way")
    said = command("run", "--root", f"{file}/root")
    assert (said.code, said.out) == (4, "")
    assert said.err == (
        f"STORAGE_FAILED The root {file}/root cannot be written: Not a directory.\n"
        "Free space, grant write permission, or name another folder with --root; nothing is lost.\n"
    )
