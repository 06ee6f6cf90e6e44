"""What a machine keeps so that its next Spark starts in half the time: where its jars are, and the JVM's classes.

Ivy takes four seconds of a core to find the jars of `spark.jars.packages` again, and a Spark that starts takes seven to
read and check its classes (docs/decisions/0047-a-spark-that-starts-sooner.md). Nothing is lost with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyspark

from demux.core.root.layout import cache_folder
from demux.core.storage.folder import LocalFolder

JARS, _PACKAGES = "spark.jars", "spark.jars.packages"
_RESOLVED_BY = (_PACKAGES, "spark.jars.excludes", "spark.jars.ivy", "spark.jars.ivySettings", "spark.jars.repositories")


@dataclass(frozen=True, slots=True)
class JvmCache:
    """The cache of this Spark and of one Java.

    Attributes:
        folder: need not be there.
        java: the home of the Java, or its program.
    """

    folder: Path
    java: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> JvmCache:
        """Return the cache of the user and the Java that the environment says."""
        java = environment.get("JAVA_HOME") or os.path.realpath(shutil.which("java") or "java")
        return cls(cache_folder(environment) / "spark", java)

    @property
    def classes(self) -> Path:
        """Return where the archive of classes is kept; it need not be there.

        A JVM that it does not fit leaves it alone. One of before Java 13, which knows none, has none of its own.
        """
        return self.folder / f"classes-{_key(pyspark.__file__, pyspark.__version__, self.java)}.jsa"

    def java_option(self, given: str) -> str:
        """Return the JVM's option that uses the archive; nothing where there is none, or `given` options name one."""
        is_named = any(name in given for name in ("SharedArchiveFile", "ArchiveClassesAtExit"))
        return f"-XX:SharedArchiveFile={self.classes}" if not is_named and self.classes.is_file() else ""

    def with_jars(self, conf: Mapping[str, str]) -> dict[str, str]:
        """Return Spark's properties with the jars of its packages in place of their names, where all are known here."""
        given = dict(conf)
        if not _is_resolved(given):
            return given
        try:
            jars = json.loads(self._jars(conf).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return given
        if not all(Path(unquote(urlsplit(jar).path)).is_file() for jar in jars):
            return given
        return {**{name: value for name, value in given.items() if name not in _RESOLVED_BY}, JARS: ",".join(jars)}

    def keep_jars(self, conf: Mapping[str, str], jars: Sequence[str]) -> None:
        """Keep where the jars of the packages are, for `with_jars`; does nothing where that cannot be written."""
        if not _is_resolved(conf) or not jars or not all(urlsplit(jar).scheme == "file" for jar in jars):
            return
        with suppress(OSError):
            LocalFolder().write(str(self._jars(conf)), json.dumps(list(jars)).encode())

    def _jars(self, conf: Mapping[str, str]) -> Path:
        return self.folder / f"jars-{_key(pyspark.__version__, *(conf.get(name, '') for name in _RESOLVED_BY))}.json"


def _is_resolved(conf: Mapping[str, str]) -> bool:
    return bool(conf.get(_PACKAGES)) and JARS not in conf


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
