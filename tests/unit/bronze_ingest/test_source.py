from __future__ import annotations

import pytest

from bronze_ingest.source import kind_of
from demux.core.errors import CheckpointLost
from demux.core.settings.source import SourceKind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"events":{"0":12,"1":0}}', SourceKind.KAFKA),
        ('{"reservoirId":{"0":12}}', SourceKind.KAFKA),
        (
            '{"sourceVersion":1,"reservoirId":"4f2a","reservoirVersion":3,"index":-1,"isStartingVersion":false}',
            SourceKind.DELTA,
        ),
        ('{"logOffset":7}', SourceKind.FILES),
    ],
)
def test_an_offset_says_which_kind_of_source_wrote_it(line: str, kind: SourceKind) -> None:
    assert kind_of(line) is kind


@pytest.mark.parametrize("line", ['{"rateOffset":7}', "7", "[]", '{"logOffs', "", "null"])
def test_an_offset_of_no_source_of_ours_is_refused_with_a_remedy(line: str) -> None:
    with pytest.raises(CheckpointLost) as refused:
        kind_of(line)
    assert refused.value.fields == {"line": line}
    assert "demux rebuild --bronze" in refused.value.remedy
