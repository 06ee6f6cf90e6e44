"""A real browser without a window: Chromium, driven by its DevTools protocol over two pipes.

https://chromedevtools.github.io/devtools-protocol; `--remote-debugging-pipe` takes commands at descriptor 3 and answers
at 4, each one JSON with a zero byte behind it. So there is neither a port nor a library.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demux.core.errors import RuntimeMissing

_SETUP = Path(__file__).parent / "setup.sh"
_DEADLINE_S = 60.0
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# gives the two pipes the numbers that the browser looks for
_BEGIN = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str:
    """Return the browser's command: CHROME_BIN or what the machine has; as root on Debian it gets installed.

    Raises:
        RuntimeMissing: there is none.
    """
    found = subprocess.run(["sh", str(_SETUP), "browser", "current"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeMissing("No browser was found to look at the page with.", found.stderr.strip())
    return found.stdout.strip()


class Tab:
    """One page; commands wait for their answer, events are kept."""

    def __init__(self, to: int, answers: int, log: Path) -> None:
        self._to, self._answers, self._log = to, answers, log
        self._number, self._buffer, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _DEADLINE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._answers, 1 << 20)
            assert piece, f"the browser is gone: {self._log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, url: str) -> None:
        """Go to a page, and wait until it has run."""
        # what the page before has still to say is not this one's
        self._go("about:blank")
        self.events.clear()
        self._go(url)

    def _go(self, url: str) -> None:
        self.command("Page.navigate", url=url)
        # an answer to this may still be the page before
        self.until(
            f"location.href.split('#')[0] === {json.dumps(url.split('#')[0])} && document.readyState === 'complete'"
        )

    def js(self, expression: str) -> Any:
        """The value of an expression, which may be a promise."""
        found = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, condition: str, most_s: float = _DEADLINE_S) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + most_s
        while not self.js(f"new Promise((done) => setTimeout(() => done(Boolean({condition})), 20))"):
            assert time.monotonic() < deadline, f"never: {condition}"

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key, as a keyboard does."""
        code = {"Enter": 13, "Tab": 9, " ": 32, "Escape": 27, "Backspace": 8}.get(key, 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": code,
            "modifiers": 8 * shift,
        }
        self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.command("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.command("Input.insertText", text=text)

    def choose(self, name: str, value: str) -> None:
        """Choose in the list with this id."""
        event = "new Event('change')"
        self.js(f"Object.assign(document.getElementById('{name}'), {{ value: '{value}' }}).dispatchEvent({event})")

    def look(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Give the window a size and a colour scheme."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path, full: bool = False) -> None:
        """Write what is seen into a PNG file."""
        found = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        file.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[Any]:
        """The errors of the page, and what the browser refused or warned of."""
        self.js("1")
        bad = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        return [event["params"] for event in self.events if event.get("method") in bad]

    def requests(self) -> list[str]:
        """The URLs that the page asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own, which is ended after the block."""
    command = [find_browser(), *_FLAGS, f"--user-data-dir={profile}"]
    # root has no sandbox to give
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    theirs_in, to = os.pipe()
    answers, theirs_out = os.pipe()
    words = [sys.executable, "-c", _BEGIN, str(theirs_in), str(theirs_out), *command]
    log = profile.with_suffix(".log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            words,
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        ) as process,
    ):
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(to, answers, log)
        finally:
            # a file in PATH may be a script, which knows nothing of the browser's end: all that it began ends
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)
            os.close(to)
            os.close(answers)
