"""docs/kafka.md and the README: every example of settings loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings

ROOT = Path(__file__).parents[5]
README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "kafka.md").read_text("utf-8")
# the one of the folder registry is no settings file
EXAMPLES = [text for text in re.findall(r"```yaml\n(.*?)```", README + PAGE, re.DOTALL) if "schemas:" not in text]


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_pages_is_a_settings_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "demux.yml"
    file.write_text(text)
    assert load(file, {}, {}) != Settings()
