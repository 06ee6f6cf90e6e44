"""docs/reference is what the code makes, and has each command, option and setting."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from demux.cli.output.print_json import DOCUMENTS
from demux.core.settings.loading.template import section_in
from demux.core.settings.settings import Settings
from tests.conftest import Golden
from tools.site.build import decisions
from tools.site.reference import cli_page, commands, decisions_page, json_page, json_schemas, settings_page


def settings_in(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """The full name of each setting."""
    for name, info in model.model_fields.items():
        section = section_in(info)
        yield from settings_in(section, f"{before}{name}.") if section else [f"{before}{name}"]


def test_the_pages_are_what_the_code_makes(golden: Golden) -> None:
    golden("../../docs/reference/cli.md", cli_page())
    golden("../../docs/reference/settings.md", settings_page())
    golden("../../docs/reference/json.md", json_page())
    golden("../../docs/reference/json.schema.json", json_schemas())
    pages = {path.name: path.read_text("utf-8") for path in decisions()}
    golden("../../docs/decisions/README.md", decisions_page(pages))


def test_each_command_has_all_its_options() -> None:
    text = cli_page()
    found = dict(commands())
    assert {"run", "quarantine drop", "schemas list"} <= found.keys()
    for name, command in found.items():
        section = text.partition(f"\n## demux {name}\n")[2].partition("\n## ")[0]
        options = [option for one in command.params if one.param_type_name == "option" for option in one.opts]
        assert [option for option in options if option not in section] == [], name


def test_each_command_that_prints_json_has_the_fields_of_it() -> None:
    with_json = {name for name, command in commands() if any("--json" in one.opts for one in command.params)}
    documented = {command.partition(" --")[0] for names in DOCUMENTS for command in re.split(r", (?!with)", names)}
    assert {name for name in documented if "with" not in name} == with_json


def test_each_setting_has_a_row() -> None:
    text = settings_page()
    assert [name for name in settings_in(Settings) if text.count(f"\n| `{name}` |") != 1] == []
