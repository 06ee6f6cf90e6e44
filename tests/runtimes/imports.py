"""Imports every module of a wheel, by the Python that runs this; each must come from where packages are installed."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import zipfile

for name in sorted(zipfile.ZipFile(sys.argv[1]).namelist()):
    if name.endswith(".py") and not name.endswith("__main__.py"):
        module = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        assert (module.__file__ or "").startswith(sysconfig.get_path("purelib")), module.__file__
