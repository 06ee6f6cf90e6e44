"""The status as one HTML page that needs nothing else: style, script and data are inside. Pure.

What comes from outside is only in the data, which has no `<`, and reaches the page as text, never as markup. A
content security policy names the two pieces that may run by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def page(content: str, refresh_s: float | None = None) -> str:
    """Return the page.

    Args:
        content: JSON as `demux.operations.status.json_view.status_json` makes it.
        refresh_s: seconds between two requests for `status.json`; None for a page in a file.
    """
    parts = {
        "POLICY": policy(),
        "STYLE": _part("page.css"),
        "SCRIPT": _part("page.js"),
        "REFRESH": "" if refresh_s is None else f"{refresh_s:g}",
        "DATA": in_script(content),
    }
    text = _part("page.html")
    for name in ("POLICY", "STYLE", "SCRIPT", "REFRESH"):
        text = text.replace(f"{{{{{name}}}}}", parts[name])
    # last, as data may look like anything
    before, _, after = text.partition("{{DATA}}")
    return f"{before}{parts['DATA']}{after}"


def in_script(content: str) -> str:
    """Return the same JSON in a form that can end neither its element nor a line of script."""
    return content.translate(_UNSAFE)


def policy() -> str:
    """Return the content security policy of the page."""
    return (
        f"default-src 'none'; script-src {_digest('page.js')}; style-src {_digest('page.css')}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(name: str) -> str:
    found = hashlib.sha256(_part(name).encode()).digest()
    return f"'sha256-{base64.b64encode(found).decode()}'"


@cache
def _part(name: str) -> str:
    return (files("demux.operations.status") / "page" / name).read_text(encoding="utf-8")
