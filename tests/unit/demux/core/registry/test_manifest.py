from __future__ import annotations

import pytest

from demux.core.errors import SchemaInvalid
from demux.core.registry.manifest import ManifestEntry, read_manifest, with_entries, without_entries

TEXT = """\
# our games
schemas:
  # the first one
  - {id: 7, subject: chess, version: 1, file: chess.proto}
  - id: 9   # two was a mistake
    subject: "yes"
    version: 3
    file: x/y.proto
    message: games.Event
    made_by: hand
"""


def test_entries_come_with_their_lines_and_the_first_free_id() -> None:
    manifest = read_manifest(TEXT, "registry.yml")
    assert manifest.entries == (
        ManifestEntry(7, "chess", 1, "chess.proto", line=4),
        ManifestEntry(9, "yes", 3, "x/y.proto", message="games.Event", made_by="hand", line=5),
    )
    assert manifest.next_id == 10


def test_no_file_and_an_empty_list_are_a_registry_without_schemas() -> None:
    assert [read_manifest(text, "f").entries for text in (None, "schemas:", "schemas: []")] == [(), (), ()]


def test_writing_keeps_comments_and_other_entries() -> None:
    added = with_entries(TEXT, "f", [ManifestEntry(10, "no: really", 1, "z.proto")], 11)
    assert "# our games" in added
    assert "# two was a mistake" in added
    entries = read_manifest(added, "f").entries
    assert [entry.subject for entry in entries] == ["chess", "yes", "no: really"]
    removed = without_entries(added, "f", [one for one in entries if one.schema_id in {7, 10}], 11)
    assert [entry.schema_id for entry in read_manifest(removed, "f").entries] == [9]
    assert read_manifest(removed, "f").next_id == 11


def test_all_mistakes_are_named_at_once_with_their_lines() -> None:
    text = """\
next_id: none
schemas:
- {id: 1, subject: a, version: 1, file: a.proto}
- {id: 1, subject: a, version: 2, file: b.proto}
- {id: 2, subject: a, version: 1, file: c.proto}
- {id: 0, subject: c, version: -1, file: d.proto}
- {id: true, subject: 5, version: 1, colour: red}
- nothing
"""
    with pytest.raises(SchemaInvalid) as failure:
        read_manifest(text, "registry.yml")
    assert failure.value.message == (
        "registry.yml has mistakes: line 6: id 0 is not from 1 to 2147483647; "
        "line 6: version -1 is not from 1 to 2147483647; line 7: id is not a number; line 7: subject is not a text; "
        "line 7: file is missing; line 7: 'colour' is none of id, subject, version, file, import_root, message, "
        "made_by; line 8: the entry is not a mapping; line 4: id 1 of 'a' is on line 3 already; "
        "line 5: version 1 of 'a' is on line 3 already; line 1: next_id is not a number from 1 on."
    )


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "line 1: it has no list `schemas`"),
        ("- a", "line 1: it has no list `schemas`"),
        ("games: []", "line 1: it has no list `schemas`"),
        ("schemas: 5", "line 1: it has no list `schemas`"),
        ("schemas: []\nschemas: []", "line 2: found duplicate key"),
        ("schemas:\n- {id: 1", "line 2: expected ',' or '}'"),
        ("schemas: !!python/object/apply:os.system [ls]", "line 1: the entry is not a mapping"),
        ("schemas: \0", "it is not YAML: "),
    ],
)
def test_what_is_not_a_manifest_is_refused_with_the_line(text: str, mistake: str) -> None:
    with pytest.raises(SchemaInvalid) as failure:
        read_manifest(text, "registry.yml")
    assert failure.value.message.startswith(f"registry.yml has mistakes: {mistake}")
