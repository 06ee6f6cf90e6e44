"""What all tests share: golden files, and properties that a busy machine does not fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).parent / "golden"

# a slow machine is no reason to fail
settings.register_profile("demux", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# what `make check` asks for
settings.register_profile("quick", settings.get_profile("demux"), max_examples=10)
settings.load_profile("demux")

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=1, help="What tests that draw by chance begin with.")
    parser.addoption("--rewrite-golden", action="store_true", help="Write tests/golden/ anew instead of comparing.")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What a test that draws by chance begins with: 1, or what `make test-long` printed."""
    found: int = request.config.getoption("--seed")
    return found


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with the golden file of this name, or writes the file with --rewrite-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8", newline="\n")
        assert path.is_file(), f"tests/golden/{name} is missing: `make golden` writes it"
        assert text + "\n" == path.read_text(encoding="utf-8")

    return check
