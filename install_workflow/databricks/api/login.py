"""The login that the settings describe, as arguments of databricks-sdk."""

from __future__ import annotations

from collections.abc import Mapping

from demux.core.secrets import resolve
from demux.core.settings.databricks.access import LoginSettings

_OAUTH = "oauth-m2m"


def login_of(settings: LoginSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings say of the login; what they leave out the SDK finds by itself.

    A service principal with a secret logs in by OAuth, whatever else the environment has.

    Args:
        environ: where `secret:env/NAME` is looked up.

    Raises:
        SecretMissing: as `resolve`.
    """
    secret = None if settings.client_secret is None else resolve(settings.client_secret, environ)
    given = {
        "host": settings.host,
        "profile": settings.profile,
        "auth_type": settings.auth_type or (None if secret is None else _OAUTH),
        "client_id": settings.client_id,
        "client_secret": secret,
    }
    return {name: value for name, value in given.items() if value is not None}
