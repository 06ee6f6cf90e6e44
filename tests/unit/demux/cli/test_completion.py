"""What a shell completes: by the protocol that its scripts use, and in bash itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demux.cli import completion, main
from demux.cli.options import settings_of
from demux.core.causes import Cause
from demux.core.control.games_and_rounds import Control, KnownGame
from demux.core.root.layout import Layout
from demux.core.settings.settings import Decoder
from demux.core.tables import SCHEMAS
from tests.support.spark.tables import MOMENT, write

# what a shell would evaluate, fold or take for an option
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "\\$(touch pwned)",
    "a b",
    "*",
    "--yes",
    "-",
    "two\nlines",
    "\x1b[31m",
    "'",
    "a:b",
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A busy machine completes late."""
    monkeypatch.setattr(completion, "_LONGEST_S", 300.0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> str:
    layout = Layout(str(tmp_path / "root"))
    games = ("chess", "checkers", "go", "将棋", "v1.2_x-y", *HOSTILE)
    Control(None, layout).replace_games([KnownGame(name, None, "plan", MOMENT) for name in games])
    uses = [(1, "chess", 1), (2, "chess", 2), (31, "$(touch pwned)", 1)]
    rows = [{"schema_id": number, "subject": subject, "version": version} for number, subject, version in uses]
    write(layout.schemas, SCHEMAS, [{"registry": "default", "descriptor_set": b"", **row} for row in rows])
    return layout.root


def completed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str, shell: str = "bash"
) -> list[str]:
    """The lines that a shell's script gets for these words, the last of which is completed."""
    monkeypatch.setattr(sys, "argv", ["demux"])
    # else it is called as what runs the tests
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)
    monkeypatch.setenv("_DEMUX_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["demux", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(["demux", *words]))
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    capfd.readouterr()
    main()
    printed = capfd.readouterr()
    assert printed.err == ""
    return [line for line in printed.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["quar"], ["quarantine"]),
        (["quarantine", "re"], ["replay"]),
        (["reconcile", "--str"], ["--strict"]),
        (["quarantine", "list", "--cause", "UN"], ["UNKNOWN_SCHEMA"]),
        (["run", "--decoder", "a"], ["auto", "arrow"]),
    ],
    ids=str,
)
def test_commands_options_and_causes_complete(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], found: list[str]
) -> None:
    assert completed(monkeypatch, capfd, *words) == found


@pytest.mark.parametrize(
    "words", [["status", "--game"], ["forget", "--game"], ["rebuild", "--game"], ["show"]], ids=str
)
def test_games_of_the_root_complete_and_names_that_a_shell_would_evaluate_do_not(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], root: str, words: list[str]
) -> None:
    command, *options = words
    assert completed(monkeypatch, capfd, command, "--root", root, *options, "ch") == ["checkers", "chess"]
    everything = completed(monkeypatch, capfd, command, "--root", root, *options, "")
    assert everything == ["checkers", "chess", "go", "v1.2_x-y", "将棋"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_games_in_its_form(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], root: str, shell: str
) -> None:
    lines = completed(monkeypatch, capfd, "show", "--root", root, "che", shell=shell)
    assert (
        "\n".join(lines)
        == {
            "bash": "checkers\nchess",
            "fish": "checkers\nchess",
            "zsh": '_arguments \'*: :(("checkers"\n"chess"))\'',
        }[shell]
    )


def test_schema_ids_complete_with_their_subjects(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], root: str
) -> None:
    assert completed(monkeypatch, capfd, "schemas", "show", "--root", root, "") == ["1", "2", "31"]
    lines = completed(monkeypatch, capfd, "schemas", "diff", "1", "--root", root, "", shell="fish")
    assert lines == ["1\tchess version 1", "2\tchess version 2", "31"]


def test_registries_of_the_settings_complete(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "demux.yml").write_text("registries: {europe: {games: [chess], path: registry}}\n", encoding="utf-8")
    assert completed(monkeypatch, capfd, "schemas", "list", "--registry", "") == ["default", "europe"]


@pytest.mark.parametrize(
    "words",
    [
        ["--root", "nowhere"],
        ["--root", "s3://bucket/root", "--set", "store.endpoint=http://127.0.0.1:1"],
        ["--root", "strange://bucket"],
        ["--set", "no-such-setting"],
        ["--settings", "missing.yml"],
        ["--root", "broken"],
    ],
    ids=str,
)
def test_where_nothing_can_be_read_there_is_nothing_to_complete_and_no_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    log = tmp_path / "broken" / "control" / "games" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{", encoding="utf-8")
    assert completed(monkeypatch, capfd, "show", *words, "c") == []


def test_what_complete_lists_is_what_there_is() -> None:
    assert completion.complete_decoders("") == [decoder.value for decoder in Decoder]
    assert settings_of(None, None, [], "arrow").decoder is Decoder.ARROW
    assert all(completion._PLAIN.fullmatch(cause.value) for cause in Cause)


@pytest.mark.thorough
def test_bash_completes_games_with_the_script_that_the_command_prints(root: str, tmp_path: Path) -> None:
    demux = tmp_path / "demux"
    demux.write_text(f"#!{sys.executable}\nfrom demux.cli import main\nmain()\n")
    demux.chmod(0o755)
    script = f"""
        export PATH={tmp_path}:$PATH
        source <(demux --show-completion bash)
        COMP_WORDS=(demux show --root {root} che) COMP_CWORD=4
        _demux_completion demux
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert (done.stdout.split(), done.stderr) == (["checkers", "chess"], "")
    assert not (tmp_path / "pwned").exists()
