"""Settings from the file, the environment and the command line; every mistake at once, each where it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from demux.core.errors import ExitCode, SettingsInvalid
from demux.core.settings.games import Policy
from demux.core.settings.loading.loader import load
from demux.core.settings.loading.template import template
from demux.core.settings.loading.yaml_positions import document_of
from demux.core.settings.settings import Decoder, Settings

SECTIONS = (
    "root, source, kafka, archive, wrapper, framing, registry, registries, games, decoder, run, maintain, store, "
    "tables, spark, log, databricks, grants"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "demux.yml"


def _mistakes(file: Path, text: str | bytes, environ: dict[str, str] | None = None, **overrides: object) -> list[str]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SettingsInvalid) as caught:
        load(file, environ or {}, overrides)
    return caught.value.message.replace(f"{file.parent}/", "").split("\n")


def _loaded(file: Path, text: str, environ: dict[str, str] | None = None, **overrides: object) -> Settings:
    file.write_text(text, encoding="utf-8")
    return load(file, environ or {}, overrides)


def test_the_template_says_nothing_but_the_defaults(file: Path) -> None:
    assert _loaded(file, template()) == Settings()


def _models() -> list[type[BaseModel]]:
    return [Settings, *(type(section) for _, section in Settings() if isinstance(section, BaseModel))]


def test_the_template_has_every_setting_with_its_description() -> None:
    flat = re.sub(r"\s*\n *# ", " ", template())
    for model in _models():
        for name, info in model.model_fields.items():
            assert re.search(rf"^ *(# )?{name}:", template(), re.MULTILINE)
            assert info.description
            assert info.description in flat


def test_the_template_stays_the_defaults_when_its_settings_are_commented_out(file: Path) -> None:
    commented = re.sub(r"^( +)(\w+: )", r"\1# \2", template(), flags=re.MULTILINE)
    assert _loaded(file, commented) == Settings()


def test_without_a_file_the_defaults_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, {}, {}) == Settings()


def test_the_default_file_is_read_from_the_working_directory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("root: here\n")
    monkeypatch.chdir(file.parent)
    assert load(None, {}, {}).root == "here"


def test_a_file_that_was_named_must_be_there(file: Path) -> None:
    with pytest.raises(SettingsInvalid, match="demux init") as caught:
        load(file, {}, {})
    assert caught.value.message == f"{file}: there is no such file; `demux init` writes one"
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_folder_in_place_of_the_file_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        load(tmp_path, {}, {})
    assert caught.value.message == f"{tmp_path}: cannot be read: Is a directory"


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(file: Path) -> None:
    text = "root: file\ndecoder: arrow\ngames:\n  limit: 1\n  policy: allow-list\n  allow: [a, b]\n"
    environ = {"DEMUX_ROOT": "environment", "DEMUX_GAMES__LIMIT": "2", "DEMUX_GAMES__ALLOW": "c, d", "HOME": "x"}
    loaded = _loaded(file, text, environ, **{"root": Path("line"), "games.allow": ("e",), "decoder": None})
    assert (loaded.root, loaded.decoder, loaded.games.limit) == ("line", Decoder.ARROW, 2)
    assert (loaded.games.policy, loaded.games.allow) == (Policy.ALLOW_LIST, ("e",))


def test_spark_properties_of_all_places_are_put_together(file: Path) -> None:
    text = "spark:\n  conf:\n    spark.a: true\n    spark.b: 1e3\n    spark.c: '3'\n"
    environ = {"DEMUX_SPARK__CONF": "{spark.b: environment, spark.d: 'x, y'}"}
    loaded = _loaded(file, text, environ, **{"spark.conf.spark.c": "line"})
    assert loaded.spark.conf == {"spark.a": "true", "spark.b": "environment", "spark.c": "line", "spark.d": "x, y"}


def test_lists_in_the_environment_are_separated_by_commas_or_written_as_yaml(file: Path) -> None:
    assert _loaded(file, "", {"DEMUX_GAMES__ALLOW": "chess, go,"}).games.allow == ("chess", "go")
    assert _loaded(file, "", {"DEMUX_GAMES__ALLOW": '["a, b", go]'}).games.allow == ("a, b", "go")
    assert _loaded(file, "", {"DEMUX_SPARK__PACKAGES": "[]"}).spark.packages == ()


def test_an_empty_variable_is_not_set(file: Path) -> None:
    assert _loaded(file, "root: file\n", {"DEMUX_ROOT": ""}).root == "file"


def test_names_that_yaml_takes_for_something_else_stay_names(file: Path) -> None:
    text = "games:\n  allow: [2048, no, 0x10, 1_000, 2024-01-01, 'null', 1.0, 007]\n"
    expected = ("2048", "no", "0x10", "1_000", "2024-01-01", "null", "1.0", "007")
    assert _loaded(file, text).games.allow == expected


def test_every_mistake_is_named_at_once_with_its_line_and_the_nearest_right_name(file: Path) -> None:
    text = """\
root: ~/data
games:
  policy: auot
  limti: 3
  limit: many
  allow: chess
  max_name_bytes: 81
run:
  retries: -1
  retries: 3
  retry_wait_s: soon
limit: 4
zzz: 1
spark:
  conf: [a]
  packages: [a, [b]]
  master: ''
  driver_memory: lots
source: 3
"""
    assert _mistakes(file, text) == [
        "demux.yml:1: root: '~/data': `~` is not expanded; write the whole path",
        "demux.yml:3: games.policy: 'auot' is not allowed; allowed: auto, allow-list; did you mean 'auto'?",
        "demux.yml:4: games.limti: unknown key; did you mean 'games.limit'?",
        "demux.yml:5: games.limit: 'many': expected a whole number",
        "demux.yml:6: games.allow: 'chess': expected a list",
        "demux.yml:7: games.max_name_bytes: '81': expected 80 or less",
        "demux.yml:9: run.retries: '-1': expected 0 or more",
        "demux.yml:10: run.retries: given twice; first in line 9",
        "demux.yml:11: run.retry_wait_s: 'soon': expected a number",
        "demux.yml:12: limit: unknown key; did you mean 'games.limit'?",
        f"demux.yml:13: zzz: unknown key; allowed: {SECTIONS}",
        "demux.yml:15: spark.conf: a list: expected a section of 'key: value' lines",
        "demux.yml:16: spark.packages.1: a list: expected text",
        "demux.yml:17: spark.master: '': expected some text",
        "demux.yml:18: spark.driver_memory: 'lots': expected text that matches ^[1-9][0-9]*[kmgt]$",
        "demux.yml:19: source: '3': expected a section of 'key: value' lines",
    ]


def test_a_key_with_something_else_to_do_says_so_from_every_place(file: Path) -> None:
    environ = {"DEMUX_DATABRICKS__GIT_SOURCE__GIT_URL": "https://git.example.com/a"}
    lines = _mistakes(file, "databricks: {git_source: {git_tag: v1}}\n", environ, **{"databricks.git_source": "a"})
    assert [line.partition(": ")[0] for line in lines] == [
        "demux.yml:1",
        "DEMUX_DATABRICKS__GIT_SOURCE__GIT_URL",
        "command line",
    ]
    assert all("check out the branch, tag or commit, and run `demux apply` there" in line for line in lines)


def test_mistakes_of_all_places_come_together_even_where_a_later_place_wins(file: Path) -> None:
    environ = {"DEMUX_DECODER": "arow", "DEMUX_GAMES_LIMIT": "3", "DEMUX_SPARK__CONF": "{a: [}", "DEMUX_Q": "1"}
    lines = _mistakes(file, "decoder: avro\n", environ, **{"decoder": "arrow", "gmes.limit": 3, "games.limit": "z"})
    assert lines[0] == "demux.yml:1: decoder: 'avro' is not allowed; allowed: auto, arrow, from_protobuf; " + (
        "did you mean 'arrow'?"
    )
    assert lines[1].startswith("DEMUX_DECODER: decoder: 'arow' is not allowed; allowed: auto, arrow, from_protobuf")
    assert lines[2] == "DEMUX_GAMES_LIMIT: unknown variable; did you mean 'DEMUX_GAMES__LIMIT'?"
    assert lines[3].startswith(
        "DEMUX_Q: unknown variable; allowed: DEMUX_ROOT, DEMUX_SOURCE__KIND, DEMUX_SOURCE__PATH, "
    )
    assert lines[4].startswith("DEMUX_SPARK__CONF: spark.conf: not valid YAML: ")
    assert lines[5:] == [
        "command line: games.limit: 'z': expected a whole number",
        "command line: gmes: unknown key; did you mean 'games'?",
    ]


def test_an_empty_file_and_empty_sections_mean_the_defaults(file: Path) -> None:
    assert _loaded(file, "") == Settings()
    assert _loaded(file, "# nothing\n---\n") == Settings()
    assert _loaded(file, "games:\n  allow:\nspark:\n  conf:\nrun: {}\nsource:\n  path:\n") == Settings()


def test_a_setting_without_a_value_is_a_mistake(file: Path) -> None:
    assert _mistakes(file, "games:\n  limit:\n") == ["demux.yml:2: games.limit: no value: expected a whole number"]


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (b"- a\n- b\n", "demux.yml:1: expected 'key: value' lines, found a list"),
        (b"only words\n", "demux.yml:1: expected 'key: value' lines, found 'only words'"),
        (b"root: a\n# \xff\n", "demux.yml:2: byte 0xff is not UTF-8"),
        (b"root: a\ndecoder: \x07\n", "demux.yml:2: not valid YAML: unprintable character U+0007"),
        (b"a: 1\n---\nb: 2\n", "demux.yml:2: not valid YAML: a second document starts here; only one is allowed"),
        (b"? {a: b}\n: c\n", "demux.yml:1: not valid YAML: a key must be plain text"),
        (
            b"root: &r a\ndecoder: *r\n",
            "demux.yml:2: not valid YAML: an alias is not supported here; write the value itself",
        ),
        (b"a: &x [*x]\n", "demux.yml:1: not valid YAML: an alias is not supported here; write the value itself"),
        (b"x:\n  - " + b"[" * 100_000, "demux.yml:2: not valid YAML: nested too deeply"),
        (b"- " * 50_000, "demux.yml:1: not valid YAML: nested too deeply"),
        (b"a: {" * 5_000, "demux.yml:1: not valid YAML: nested too deeply"),
        (
            b'root: a\n"\\ud800": b\n',
            "demux.yml:2: not valid YAML: half of a surrogate pair; write the character itself",
        ),
        (b"#" * 300_000, "demux.yml: is larger than 262144 bytes"),
        (
            b'"a\\nb\\e[31m": 1\n',
            f"demux.yml:1: a\\u000ab\\u001b[31m: unknown key; allowed: {SECTIONS}",
        ),
    ],
)
def test_a_hostile_file_is_one_mistake_with_its_line(file: Path, content: bytes, mistake: str) -> None:
    assert _mistakes(file, content) == [mistake]


@pytest.mark.parametrize(
    ("text", "line"),
    [("root: a\ngames:\n\tlimit: 3\n", 3), ("root: [a\nb: c\n", 2), ("root: 'a\n\n", 3), ("a: b: c\n", 1)],
)
def test_a_syntax_error_has_its_line(file: Path, text: str, line: int) -> None:
    (mistake,) = _mistakes(file, text)
    assert mistake.startswith(f"demux.yml:{line}: not valid YAML: ")


def test_after_a_syntax_error_the_other_places_are_still_checked(file: Path) -> None:
    lines = _mistakes(file, "a: b: c\n", {"DEMUX_DECODER": "auot"}, **{"run.retries": -1})
    assert [line.split(":")[0] for line in lines] == ["demux.yml", "DEMUX_DECODER", "command line"]


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfroot: a\r\ngames:\r\n  limit: 3\r\n")
    assert (load(file, {}, {}).root, load(file, {}, {}).games.limit) == ("a", 3)


def test_a_file_of_nothing_but_mistakes_shows_the_first_hundred_and_keeps_all(file: Path) -> None:
    file.write_text("".join(f"key_{number}: 1\n" for number in range(150)))
    with pytest.raises(SettingsInvalid) as caught:
        load(file, {}, {})
    lines = caught.value.message.split("\n")
    assert (len(lines), lines[-1]) == (101, "and 50 more mistakes")
    assert len(caught.value.fields["mistakes"]) == 150  # type: ignore[arg-type]


_yaml_like = st.lists(
    st.sampled_from(
        [
            *"\n\n  :::-[]{},'\"#&*!|>%@`?~\t\\",
            "root",
            "games",
            "limit",
            "\n  ",
            ": ",
            "- ",
            "---",
            "%YAML 1.2",
            "\x00",
            "é",
        ]
    ),
    max_size=40,
).map("".join)


@given(_yaml_like | st.text())
def test_any_text_is_a_document_or_slips_with_lines_inside_the_text(text: str) -> None:
    document = document_of(text)
    assert all(1 <= slip.line <= len(re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text)) for slip in document.slips)


@given(content=_yaml_like.map(str.encode) | st.binary(), value=st.text(), key=st.text())
def test_whatever_stands_anywhere_is_settings_or_mistakes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, value: str, key: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yml"
    file.write_bytes(content)
    environ = {"DEMUX_SPARK__CONF": value, "DEMUX_GAMES__ALLOW": value, f"DEMUX_{key}": value}
    assert all(line.isprintable() for line in _outcome(file, environ, {key: value}))


def _outcome(file: Path, environ: dict[str, str], overrides: dict[str, object]) -> list[str]:
    try:
        load(file, environ, overrides)
    except SettingsInvalid as error:
        return error.message.split("\n")
    return []


def test_what_a_command_has_for_defaults_gives_way_to_the_file_the_environment_and_the_command_line(file: Path) -> None:
    file.write_text("games: {limit: 3}\n", encoding="utf-8")
    defaults = {"root": "own", "games.limit": 1, "registry.url": "http://own", "kafka.topics": "own"}
    environ = {"DEMUX_REGISTRY__URL": "http://environment"}
    loaded = load(file, environ, {"kafka.topics": "mine"}, defaults)
    assert (loaded.root, loaded.games.limit) == ("own", 3)
    assert (loaded.registry.url, loaded.kafka.topics) == ("http://environment", ("mine",))


def test_null_on_the_command_line_is_no_value_where_a_setting_may_have_none() -> None:
    overrides = {"wrapper.schema_id_field": "null", "framing.payload": "header", "wrapper.game_field": "null"}
    wrapper = load(None, {}, overrides).wrapper
    assert (wrapper.schema_id_field, wrapper.game_field) == (None, "null")
