"""References to secrets, what is behind them, and settings that hold a secret itself: refused, and never repeated."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from demux.cli.options import settings_of
from demux.core.errors import ExitCode, SecretMissing, SettingsInvalid
from demux.core.secrets import is_reference, is_secret_option, resolve
from demux.core.settings.loading.loader import load
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.exchange import Answer
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way
from tests.fakes.workspace.http.server import serving
from tests.fakes.workspace.secrets import Secrets

PLANTED = "planted-8Wd2/x:y"
TOKEN = "planted-token-5Jk1"


def missing(reference: str, environ: Mapping[str, str] | None = None) -> str:
    """Why there is no such secret."""
    with pytest.raises(SecretMissing) as raised:
        resolve(reference, environ or {})
    error = raised.value
    assert (error.exit_code, error.fields) == (ExitCode.USAGE, {"reference": reference})
    assert error.remedy == "Put the secret there, or correct the reference in the settings."
    shown = "".join(traceback.format_exception(error))
    assert PLANTED not in shown
    assert TOKEN not in shown
    head = f"There is no secret {reference}: "
    assert error.message.startswith(head)
    return error.message.removeprefix(head)


class TestReferences:
    @pytest.mark.parametrize(
        "text",
        ["secret:env/A", "secret:env/a b", "secret:file/x", "secret:file//run/secrets/x", "secret:databricks/s/k"],
    )
    def test_the_three_forms_are_references(self, text: str) -> None:
        assert is_reference(text)

    @pytest.mark.parametrize(
        "text",
        [
            "", "hunter2", "secret:", "secret:env/", "secret:env", "secret:env/A=b", "secret:env/A/B", "secret:file/",
            "secret:databricks/s", "secret:databricks/s/", "secret:databricks//k", "secret:databricks/s/k/more",
            "secret:vault/x", "SECRET:env/A", " secret:env/A", "secret:env/A\n", "secret:file/a\0b", "${secret:env/A}",
        ],
    )  # fmt: skip
    def test_nothing_else_is_one(self, text: str) -> None:
        assert not is_reference(text)

    @pytest.mark.parametrize(
        "name",
        [
            "password", "ssl.truststore.password", "sasl.password", "sasl.jaas.config", "ssl.keystore.key",
            "ssl.key.pem", "sasl.oauthbearer.client.secret", "basic.auth.user.info", "bearer.auth.token", "token",
            "sasl.oauthbearer.assertion.private.key.passphrase", "SSL.KEY.PASSWORD", "aws.credentials",
        ],
    )  # fmt: skip
    def test_options_that_hold_secrets_are_known_by_their_names(self, name: str) -> None:
        assert is_secret_option(name)

    @pytest.mark.parametrize(
        "name",
        ["fetch.max.bytes", "ssl.ca.pem", "ssl.certificate.pem", "ssl.keystore.location", "token_url", "token_scope"],
    )
    def test_other_options_may_be_seen(self, name: str) -> None:
        assert not is_secret_option(name)


class TestEnvironment:
    def test_a_variable_is_taken_as_it_is(self) -> None:
        assert resolve("secret:env/P", {"P": f" {PLANTED}\n"}) == f" {PLANTED}\n"

    @pytest.mark.parametrize("environ", [{}, {"P": ""}])
    def test_a_variable_that_is_not_set_or_empty_is_missing(self, environ: Mapping[str, str]) -> None:
        assert missing("secret:env/P", environ) == "the environment variable P is not set."


class TestFile:
    @pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
    def test_a_files_text_is_taken_without_the_line_end_behind_it(self, tmp_path: Path, end: str) -> None:
        (tmp_path / "p").write_bytes(f" {PLANTED} ä{end}".encode())
        assert resolve(f"secret:file/{tmp_path}/p", {}) == f" {PLANTED} ä"

    def test_a_path_begins_at_the_root_with_one_slash_or_two(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "p").write_text(PLANTED)
        monkeypatch.chdir(tmp_path)
        assert resolve(f"secret:file{tmp_path}/p", {}) == PLANTED
        assert resolve(f"secret:file/{tmp_path}/p", {}) == PLANTED
        assert missing("secret:file/p") == "No such file or directory."

    def test_it_is_read_again_each_time(self, tmp_path: Path) -> None:
        (tmp_path / "p").write_text("one")
        assert resolve(f"secret:file/{tmp_path}/p", {}) == "one"
        (tmp_path / "p").write_text("two")
        assert resolve(f"secret:file/{tmp_path}/p", {}) == "two"

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (None, "No such file or directory."),
            (b"", "the file is empty."),
            (b"\n\r\n", "the file is empty."),
            (f"{PLANTED}\xff".encode("latin-1"), "it is not UTF-8 text."),
        ],
    )
    def test_a_file_that_is_not_there_empty_or_no_text_is_missing(
        self, tmp_path: Path, content: bytes | None, why: str
    ) -> None:
        if content is not None:
            (tmp_path / "p").write_bytes(content)
        assert missing(f"secret:file/{tmp_path}/p") == why

    def test_a_folder_is_missing(self, tmp_path: Path) -> None:
        assert missing(f"secret:file/{tmp_path}") == "Is a directory."


class TestDatabricks:
    @pytest.fixture
    def workspace(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeWorkspace]:
        """A workspace that the client finds by its environment, as in a Databricks job."""
        held = {("team", "kafka"): PLANTED.encode(), ("team", "empty"): b"", ("team", "binary"): b"\xff\xfe"}
        with serving(FakeWorkspace(TOKEN, Secrets(held, {("team", "null"): None}))) as workspace:
            # no profile of whoever runs the tests
            monkeypatch.setenv("HOME", str(tmp_path))
            for name, value in workspace.environ.items():
                monkeypatch.setenv(name, value)
            yield workspace

    def test_a_secret_is_asked_of_the_workspace_each_time(
        self, workspace: FakeWorkspace, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        assert resolve("secret:databricks/team/kafka", {}) == PLANTED
        assert resolve("secret:databricks/team/kafka", {}) == PLANTED
        assert workspace.secrets.asked == [("team", "kafka")] * 2
        assert PLANTED not in caplog.text
        assert TOKEN not in caplog.text

    @pytest.mark.parametrize(
        ("key", "why"),
        [
            ("other", "Secret does not exist with scope: team and key: other."),
            ("empty", "it is empty."),
            ("null", "it is empty."),
            ("binary", "the workspace's answer is not UTF-8 text."),
        ],
    )
    def test_one_that_is_not_there_empty_or_no_text_is_missing(
        self, workspace: FakeWorkspace, key: str, why: str
    ) -> None:
        assert missing(f"secret:databricks/team/{key}") == why

    @pytest.mark.parametrize("body", ["<html></html>", "[]", '{"value": 7}', '{"value": ["x"]}', '"x"'])
    def test_an_answer_of_another_shape_is_a_missing_secret(self, workspace: FakeWorkspace, body: str) -> None:
        workspace.faults.plan(Fault(Way.OTHER, path="secrets/get", answer=Answer(200, body.encode()), times=ALWAYS))
        assert "\n" not in missing("secret:databricks/team/kafka")
        assert len(workspace.faults.happened) == 1

    def test_a_workspace_that_does_not_know_us_is_told_without_our_token(
        self, workspace: FakeWorkspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABRICKS_TOKEN", f"{TOKEN}-old")
        assert missing("secret:databricks/team/kafka").startswith("Invalid access token")
        assert workspace.secrets.asked == []

    def test_without_a_workspace_the_secret_is_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
        assert missing("secret:databricks/team/kafka").startswith("default auth: cannot configure default credentials")


# every place where a person may put a secret by mistake
SETTINGS = [
    "kafka.password",
    "kafka.truststore_password",
    "kafka.keystore_password",
    "kafka.key_password",
    "registry.password",
    "registry.token",
]
FORMS = "secret:env/NAME, secret:file/PATH or secret:databricks/SCOPE/KEY"


def refused(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> str:
    """What is said of the settings; never with the planted value."""
    with pytest.raises(SettingsInvalid) as raised:
        load(file, environ or {}, overrides or {})
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value.fields)
    assert PLANTED not in shown
    return raised.value.message


class TestLiteralSecrets:
    @pytest.mark.parametrize("dotted", SETTINGS)
    def test_one_in_the_file_the_environment_or_the_command_line_is_refused(self, dotted: str, tmp_path: Path) -> None:
        section, key = dotted.split(".")
        file = tmp_path / "demux.yml"
        file.write_text(f"{section}:\n  {key}: {PLANTED}\n")
        said = f"{dotted}: expected {FORMS}, never the secret itself"
        assert refused(file) == f"{file}:2: {said}"
        variable = f"DEMUX_{section}__{key}".upper()
        assert refused(environ={variable: PLANTED}) == f"{variable}: {said}"
        assert refused(overrides={dotted: PLANTED}) == f"command line: {said}"

    @pytest.mark.parametrize("option", ["sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "ssl.key.pem"])
    def test_one_among_kafkas_options_is_refused_and_its_name_is_told(self, option: str) -> None:
        said = f"kafka.options: a section: {option} must be {FORMS}, never the secret itself"
        assert refused(overrides={f"kafka.options.{option}": PLANTED}) == f"command line: {said}"

    def test_one_in_a_registry_of_some_games_is_refused(self) -> None:
        text = f"{{eu: {{games: [chess], url: 'http://x', password: '{PLANTED}'}}}}"
        said = f"registries.eu.password: expected {FORMS}, never the secret itself"
        assert refused(environ={"DEMUX_REGISTRIES": text}) == f"DEMUX_REGISTRIES: {said}"

    @pytest.mark.parametrize(
        ("dotted", "value"),
        [
            # of another shape than wanted
            ("kafka.password", [PLANTED]),
            ("kafka.password", {"value": PLANTED}),
            ("kafka.password.value", PLANTED),
            ("kafka.options", f"sasl.jaas.config={PLANTED}"),
            ("kafka.options.sasl.jaas.config", [PLANTED]),
            ("kafka", f"password={PLANTED}"),
            ("registries", f"eu password {PLANTED}"),
            ("registries.eu", f"password {PLANTED}"),
            ("registry", PLANTED),
            # under a key that is not there
            ("kafka.pasword", PLANTED),
            ("kafka_password", PLANTED),
            ("password", PLANTED),
            # within an address
            ("registry.url", f"https://alice:{PLANTED}@registry/apis"),
            ("registry.url", f"alice:{PLANTED}@registry"),
            ("registry.url", f"https://alice:{PLANTED}@[registry"),
            ("kafka.token_url", f"https://alice:{PLANTED}@registry/token"),
            ("root", f"s3a://alice:{PLANTED.replace('/', '')}@bucket/root"),
            # with a slip of the form
            ("kafka.password", f"secret:{PLANTED}"),
            ("kafka.password", f"secret:env/P={PLANTED}"),
        ],
    )
    def test_one_where_it_cannot_even_be_is_not_repeated(self, dotted: str, value: object) -> None:
        assert PLANTED.replace("/", "") not in refused(overrides={dotted: value})

    @pytest.mark.parametrize(
        "change", [f"kafka.password {PLANTED}", f"kafka.password:{PLANTED}", f"registry.token {PLANTED}"]
    )
    def test_an_option_without_an_equals_sign_does_not_repeat_it(self, change: str) -> None:
        with pytest.raises(SettingsInvalid) as raised:
            settings_of(None, None, [change])
        assert PLANTED not in f"{raised.value!r} {raised.value.fields}"

    def test_references_are_taken_and_kept_as_they_are(self) -> None:
        references = {dotted: f"secret:env/{number}" for number, dotted in enumerate(SETTINGS)}
        loaded = load(None, {}, {**references, "kafka.options.ssl.keystore.key": "secret:file/k"})
        assert loaded.kafka.password == "secret:env/0"
        assert loaded.registry.token == "secret:env/5"
        assert loaded.kafka.options == {"ssl.keystore.key": "secret:file/k"}
