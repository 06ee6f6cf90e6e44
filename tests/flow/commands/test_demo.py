"""`demux prepare`: the archive that it keeps is one that a JVM takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flow.process import DEMUX, ENVIRONMENT, run


@pytest.mark.long
def test_a_prepared_machine_starts_a_spark_from_its_archive(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    said = run([DEMUX, "prepare"], environment)
    assert (said.code, said.err) == (0, "")
    (archive,) = (tmp_path / "cache" / "protobuf-demux" / "spark").glob("classes-*.jsa")
    assert str(archive) in said.out.replace("\n", "")
    # so a JVM that cannot use the archive ends at once
    strict = {**environment, "JAVA_TOOL_OPTIONS": f"{ENVIRONMENT['JAVA_TOOL_OPTIONS']} -Xshare:on"}
    words = [DEMUX, "demo", "--events", "200", "--root", str(tmp_path / "root")]
    said = run(words, strict)
    assert (said.code, said.err) == (0, "")
    archive.chmod(0o644)
    archive.write_bytes(b"spoilt")
    # and without that word it does without
    assert run(words, environment).code == 0
    assert run(words, strict).code != 0
