"""References to secrets, and the secrets behind them; no setting ever holds a secret itself.

`secret:env/NAME` is an environment variable, `secret:file/PATH` the text of /PATH without the line end behind it,
`secret:databricks/SCOPE/KEY` a secret of the workspace. What `resolve` returns goes straight into the client that
needs it, and nowhere else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic_core import PydanticCustomError

from demux.core.errors import SecretMissing

FORMS = "secret:env/NAME, secret:file/PATH or secret:databricks/SCOPE/KEY"

_REFERENCE = re.compile(r"secret:(?:env/[^/=\0\n]+|file/[^\0\n]+|databricks/[^/\0\n]+/[^/\0\n]+)")
_SECRET_OPTION = re.compile(
    r"password|passphrase|secret|token$|jaas|credential|\.key$|key\.pem$|user\.info", re.IGNORECASE
)
# the client's own default is five minutes
_WORKSPACE_RETRY_S = 30
_REMEDY = "Put the secret there, or correct the reference in the settings."


def is_reference(text: str) -> bool:
    """Return whether the text is a reference to a secret."""
    return _REFERENCE.fullmatch(text) is not None


def is_secret_option(name: str) -> bool:
    """Return whether the value of a Kafka option or setting of this name must not be seen."""
    return _SECRET_OPTION.search(name) is not None


def require_reference(text: str) -> str:
    """Return the text when it is a reference to a secret; the error never repeats it."""
    if not is_reference(text):
        raise PydanticCustomError("secret", f"expected {FORMS}, never the secret itself")
    return text


def resolve(reference: str, environ: Mapping[str, str]) -> str:
    """Return the secret behind a reference; reads a file or asks the workspace, each time.

    Raises:
        SecretMissing: it is not there or cannot be read; the error has the reference, never the secret.
    """
    kind, _, where = reference.removeprefix("secret:").partition("/")
    match kind:
        case "env":
            if not environ.get(where):
                raise _missing(reference, f"the environment variable {where} is not set")
            return environ[where]
        case "file":
            # the slash before it may be left out or not
            return _of_file(reference, Path(f"/{where}"))
        case _:
            scope, _, key = where.partition("/")
            return _of_databricks(reference, scope, key)


def _of_file(reference: str, path: Path) -> str:
    try:
        secret = path.read_text("utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise _missing(reference, getattr(error, "strerror", None) or "it is not UTF-8 text") from None
    if not secret:
        raise _missing(reference, "the file is empty")
    return secret


def _of_databricks(reference: str, scope: str, key: str) -> str:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config
    from databricks.sdk.errors.base import DatabricksError

    try:
        workspace = WorkspaceClient(config=Config(retry_timeout_seconds=_WORKSPACE_RETRY_S))
        value = workspace.secrets.get_secret(scope, key).value
    except (DatabricksError, AttributeError, TypeError, ValueError, OSError) as error:
        # the client breaks on JSON of another shape, and its sentence may continue over many lines
        raise _missing(reference, str(error).splitlines()[0].rstrip(".") if str(error) else "no answer") from None
    try:
        secret = base64.b64decode(value or "", validate=True).decode()
    except (TypeError, ValueError):
        raise _missing(reference, "the workspace's answer is not UTF-8 text") from None
    if not secret:
        raise _missing(reference, "it is empty")
    return secret


def _missing(reference: str, reason: str) -> SecretMissing:
    return SecretMissing(f"There is no secret {reference}: {reason}.", _REMEDY, reference=reference)
