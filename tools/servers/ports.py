"""Ports on 127.0.0.1 that nobody listens on."""

from __future__ import annotations

import random
import socket

from tools.servers.errors import PortTaken

HOST = "127.0.0.1"
# below the ports that outgoing connections take: a client that calls a server which is away
# could otherwise be given the server's own port, and answer itself
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> tuple[int, ...]:
    """Return so many different ports that were free a moment ago."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return tuple(found)


def is_free(port: int) -> bool:
    """Return whether a server could listen there now."""
    with socket.socket() as probe:
        # as servers do: connections of yesterday do not count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def must_be_free(port: int, server: str) -> None:
    """Return when a server could listen there.

    Raises:
        PortTaken: another process does.
    """
    if not is_free(port):
        raise PortTaken(
            f"The {server} cannot start: another process listens on {HOST}:{port}.",
            "Stop that process, or give another port (see --help).",
            port=port,
        )


def listens(port: int) -> bool:
    """Return whether a process accepts connections on the port."""
    try:
        socket.create_connection((HOST, port), 1.0).close()
    except OSError:
        return False
    return True
