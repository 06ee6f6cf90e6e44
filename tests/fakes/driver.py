"""A driver without Spark: says what `demux.cli.driver` says, and does to each game what the game's name asks for.

| name begins with | what happens |
| --- | --- |
| `ok` | a report, whose rows are the number of this process |
| `fail` | an error that is transient |
| `kill` | the process is killed, each time |
| `kill-once` | the same, the first time only |
| `jvm` | a process that it started lives on, and then it is killed |
| `hang` | under way until the command says stop; then a report |
| `leave` | the process ends by itself, with exit code 7 |

In a cluster called `broken` or `locked` it cannot work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from demux.errors import RegistryUnavailable, RootLocked, RuntimeMissing
from demux.reports import GameReport
from install_workflow.drivers import Begun, Broken, Hello, Message, Over, Ready, Stop, Work, from_line, to_line


def tell(message: Message) -> None:
    sys.stdout.buffer.write(to_line(message))
    sys.stdout.buffer.flush()


def heard() -> Message:
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(0)
    return from_line(line)


def first_time(hello: Hello, what: str) -> bool:
    """Whether nobody asked this before; said by a file beside the log."""
    mark = Path(hello.logs, what)
    known = mark.exists()
    mark.touch()
    return not known


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def do(game: str, hello: Hello) -> bool:
    """Do a game; return whether to stop after it."""
    tell(Begun(game))
    stopped = False
    if game.startswith("kill-once"):
        if first_time(hello, "once"):
            die()
    elif game.startswith("kill"):
        die()
    elif game.startswith("jvm"):
        if first_time(hello, "jvm"):
            Path(hello.logs, "orphan").write_text(
                str(subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL).pid)
            )
            die()
    elif game.startswith("leave"):
        sys.exit(7)
    elif game.startswith("hang"):
        Path(hello.logs, "hangs").write_text(str(os.getpid()))
        stopped = isinstance(heard(), Stop)
    elif game.startswith("fail"):
        tell(Over(game, None, RegistryUnavailable("It does not answer.", "Try later."), 0.5))
        return False
    tell(Over(game, GameReport(game, os.getpid(), 1, 2, (3, 4)), None, 0.25))
    return stopped


def main() -> None:
    hello = heard()
    assert isinstance(hello, Hello)
    print("started", file=sys.stderr)
    cannot = {"broken": RuntimeMissing("Spark did not start.", "Install it."), "locked": RootLocked("Held.", "Wait.")}
    if hello.cluster in cannot:
        tell(Broken(cannot[hello.cluster]))
        return
    tell(Ready())
    work = heard()
    assert isinstance(work, Work)
    for game in (*work.together, *work.alone):
        if do(game, hello):
            return


if __name__ == "__main__":
    main()
