"""The page as `demux serve` gives it: it keeps itself up to date, and says when it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demux.operations.status import http_server as server
from demux.operations.status.http_server import SiteCache, StatusServer
from demux.operations.status.model import Status
from tests.support.data.statuses import busy, key
from tools.chromium import Tab

TILE = "document.querySelector('#tiles dd').textContent"


class Root:
    """What the server reads; a test sets it."""

    def __init__(self) -> None:
        self.status: Status | None = busy(20, rounds=2)

    def read(self) -> Status:
        if self.status is None:
            raise PermissionError("no")
        return self.status


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.setattr(server, "REFRESH_S", 0.1)
    return Root()


@pytest.fixture
def served(root: Root) -> Iterator[StatusServer]:
    found = StatusServer(SiteCache(root.read, kept_s=0.0), "127.0.0.1", 0)
    found.start()
    yield found
    found.stop()


def test_the_page_shows_what_is_new_and_keeps_filter_order_and_open_games(
    tab: Tab, served: StatusServer, root: Root
) -> None:
    tab.look(1440)
    tab.open(served.url)
    assert tab.js("document.getElementById('connection').textContent") == "live"
    tab.js("document.getElementById('filter').focus()")
    tab.type("game_0000")
    tab.js("document.querySelector('[data-column=name] button').click()")
    tab.js("document.querySelector('[data-key=game_00003]').click()")
    tab.js("document.querySelector('[data-key=game_00003]').focus()")
    root.status = busy(30, rounds=2)
    tab.until(f"{TILE} === '30'")
    assert tab.js("document.getElementById('count').textContent") == "10 of 30 games"
    assert tab.js("document.activeElement.dataset.key") == "game_00003"
    assert tab.js("document.querySelectorAll('tr.detail').length") == 1
    assert tab.js("document.querySelector('[data-column=name]').getAttribute('aria-sort')") == "ascending"
    assert tab.complaints() == []


def test_a_root_that_cannot_be_read_is_said_on_the_page_which_goes_on_by_itself(
    tab: Tab, served: StatusServer, root: Root
) -> None:
    tab.open(served.url)
    root.status = None
    tab.until("document.getElementById('connection').textContent.startsWith('not read since ')")
    assert "PermissionError" in tab.js("document.getElementById('connection').textContent")
    assert tab.js(TILE) == "20"
    root.status = busy(7, rounds=2)
    tab.until(f"{TILE} === '7'")
    assert tab.js("document.getElementById('connection').textContent") == "live"


def test_a_page_that_is_paused_asks_for_nothing_until_it_goes_on(tab: Tab, served: StatusServer, root: Root) -> None:
    tab.open(served.url)
    tab.js("document.getElementById('pause').click()")
    assert tab.js("document.getElementById('connection').textContent") == "paused"
    asked = len(tab.requests())
    root.status = busy(9, rounds=2)
    # other requests take longer than a refresh would wait
    tab.js("(async () => { for (let at = 0; at < 100; at += 1) await fetch('/healthz'); })()")
    # one may have been under way
    assert len([url for url in tab.requests() if not url.endswith("/healthz")]) <= asked + 1
    tab.js("document.getElementById('pause').click()")
    tab.until(f"{TILE} === '9'")


@pytest.mark.parametrize("name", ["game_00005", "</script><script>document.title='broken'</script>"])
def test_the_address_of_a_game_leads_to_it(tab: Tab, served: StatusServer, name: str) -> None:
    tab.command("Page.navigate", url=f"{served.url}game/{key(name)}")
    tab.until(f"document.activeElement.dataset.key === '{key(name)}'")
    assert tab.js("document.activeElement.textContent") == name
    assert tab.js("document.title") == "demux status"


def test_a_server_that_ended_is_said_on_the_page(tab: Tab, served: StatusServer) -> None:
    tab.open(served.url)
    served.stop()
    tab.until("document.getElementById('connection').className === 'lost'")
    assert tab.js("document.getElementById('connection').textContent").startswith("not read since ")
