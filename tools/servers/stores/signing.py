"""Signatures of S3 requests (AWS Signature Version 4), made again by a proxy that checks session tokens itself.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

_SCOPE = re.compile(r"Credential=[^/]+/(\d{8}/[^,]+)")
# signed by the client, and not to be passed on
_OWN = frozenset({"authorization", "x-amz-security-token"})


def signed_again(method: str, target: str, headers: Mapping[str, str], keys: tuple[str, str]) -> dict[str, str]:
    """Return the headers of a signed request, signed with other keys, and without a session token.

    Args:
        target: path and query, as they are sent.
        keys: id and key.
    """
    said = {name.lower(): value for name, value in headers.items()}
    kept = {name: value for name, value in said.items() if name not in _OWN}
    found = _SCOPE.search(said["authorization"])
    assert found is not None
    scope, names = found[1], sorted(name for name in kept if name == "host" or name.startswith("x-amz-"))
    parts = urlsplit(target)
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(parts.query, True)
    )
    canonical = "\n".join(
        (
            method,
            parts.path,
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{kept[name].strip()}" for name in names),
            "",
            ";".join(names),
            kept["x-amz-content-sha256"],
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{kept['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{keys[1]}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope},SignedHeaders={';'.join(names)},Signature={key.hex()}"
    )
    return {**kept, "authorization": authorization}
