"""`python -m tools.site [FOLDER]`, which `make site` calls: builds the documentation site."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tools.site.build import ROOT, build_site

if __name__ == "__main__":
    # what is wrong with a link
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    site = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "site").resolve()
    build_site(site)
    print(site / "index.html")
