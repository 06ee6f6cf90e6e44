"""`python -m tools.servers up|down|status|build|lock`, which `make up`, `make down` and `make test` call."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from demux.core.errors import DemuxError
from demux.core.root.layout import cache_folder
from tools.servers.detached import BROKER_PORT, REGISTRY_PORT, STORE_PORT, Detached, Ports, down, known, up
from tools.servers.go.program import built
from tools.servers.packages import KAFKA, REGISTRY, write_sums
from tools.servers.stores import s3

_NOT_RUNNING = 3


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the exit code; a failure is two sentences on standard error."""
    asked = _parser(cache_folder(environment) / "up").parse_args(words)
    try:
        match asked.command:
            case "up":
                return _up(asked.folder, Ports(asked.broker_port, asked.registry_port, asked.store_port))
            case "down":
                return _down(asked.folder)
            case "status":
                return _status(known(asked.folder))
            case "build":
                print(built(s3.PROGRAM, cache_folder(environment)))
                return 0
            case _:
                return _lock()
    except DemuxError as error:
        print(f"{error.condition} {error.message}\n{error.remedy}", file=sys.stderr)
        return int(error.exit_code)


def _parser(folder: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.servers", description=__doc__)
    parser.add_argument(
        "command",
        choices=("up", "down", "status", "build", "lock"),
        help="start the servers; stop exactly those, and remove their data; tell which run; "
        "build the S3 server, once; or write locks/*.sha256 again for other versions",
    )
    parser.add_argument("--broker-port", type=int, default=BROKER_PORT, help="default: %(default)s")
    parser.add_argument("--registry-port", type=int, default=REGISTRY_PORT, help="default: %(default)s")
    parser.add_argument("--store-port", type=int, default=STORE_PORT, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=folder, help="data, logs and state; default: %(default)s")
    return parser


def _up(folder: Path, ports: Ports) -> int:
    before = known(folder)
    servers = up(folder, ports, lambda sentence: print(sentence, file=sys.stderr))
    if servers == before:
        print("All servers run already.")
    _show(servers)
    print(f"Data and logs: {folder}. `make down` stops all and removes them.")
    return 0


def _down(folder: Path) -> int:
    stopped = down(folder)
    for server in stopped:
        print(f"{server.name} stopped")
    if stopped:
        print("Their data is gone: remove the roots that were filled from them, such as demux-data-kafka.")
    else:
        print("Nothing of ours runs.")
    return 0


def _status(servers: tuple[Detached, ...]) -> int:
    _show(servers)
    if servers and all(server.runs for server in servers):
        return 0
    print("Not all servers run; `make up` starts them.")
    return _NOT_RUNNING


def _show(servers: tuple[Detached, ...]) -> None:
    for server in servers:
        state = "" if server.runs else "  (not running)"
        print(f"{server.name:<16} {server.address}{state}")


def _lock() -> int:
    for package in (KAFKA, REGISTRY):
        write_sums(package)
        print(f"{package.name} {package.version}: locks/{package.sums.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
