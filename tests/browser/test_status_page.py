"""The status page in a real browser: what people see, click and type; on a phone, at night, with 10,000 games."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from demux.core.text import printable
from demux.operations.status.facts import Facts
from demux.operations.status.html_page import page
from demux.operations.status.json_view import status_json
from demux.operations.status.model import Status
from demux.operations.status.summary import status_of
from tests.support.data.statuses import HOSTILE, NOW, WORSE, busy, known, record
from tools.chromium import Tab
from tools.screenshot import PICTURES, take

NAMES = "[...document.querySelectorAll('td.name button')].map((one) => one.textContent)"
STATES = "[...document.querySelectorAll('#body .state')].map((one) => one.textContent)"
FOCUS = "(document.activeElement.dataset.key || document.activeElement.id || document.activeElement.textContent)"
OUTLINE = "[getComputedStyle(document.activeElement)].flatMap((one) => [one.outlineStyle, one.outlineWidth])"
ROWS_WAITING = "[...document.querySelectorAll('#body td[data-label=\"Rows waiting\"]')].map((one) => one.textContent)"


def show(tab: Tab, folder: Path, status: Status, width: int = 1440, dark: bool = False, fragment: str = "") -> None:
    file = folder / "status.html"
    file.write_text(page(status_json(status)), encoding="utf-8")
    tab.look(width, dark=dark)
    # another page than the one before, even if only its fragment is another
    tab.open("about:blank")
    tab.open(f"{file.as_uri()}{fragment}")


@pytest.fixture(scope="module")
def sixty() -> Status:
    return busy(60)


@pytest.fixture
def shown(tab: Tab, tmp_path: Path, sixty: Status) -> Tab:
    show(tab, tmp_path, sixty)
    return tab


def test_hostile_names_are_text_and_nothing_complains_or_asks_the_network(tab: Tab, tmp_path: Path) -> None:
    hostile = (*HOSTILE, *WORSE)
    # the only games: so they are in what failed, who waits, and which clusters there are
    show(tab, tmp_path, busy(len(hostile), first=hostile), 360)
    tab.js("document.querySelectorAll('td.name button').forEach((one) => one.click())")
    assert set(tab.js(NAMES)) == {printable(name) for name in hostile}
    assert tab.js("document.querySelectorAll('tr.detail').length") == len(hostile)
    assert tab.js("document.title") == "demux status"
    assert tab.js("document.querySelectorAll('img, iframe, object, link').length") == 0
    assert tab.js("document.scripts.length") == 2
    assert tab.js(CUT_OFF) == []
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("file:")] == []


def test_what_failed_comes_first_and_the_tiles_sum_it_up(shown: Tab, sixty: Status) -> None:
    states = shown.js(STATES)
    order = ["failed", "waiting", "behind", "up to date"]
    assert states == sorted(states, key=order.index)
    assert shown.js("document.querySelector('#tiles dd').textContent") == "60"
    assert shown.js("document.querySelector('.problems .what').textContent") == sixty.problems[0].condition
    assert shown.js("document.querySelector('.problems .what').nextElementSibling.textContent").startswith("2 games: ")
    assert shown.js("document.querySelectorAll('#plots svg polyline').length") == 3


def test_the_filter_and_the_state_leave_fewer_games_and_say_how_many(shown: Tab) -> None:
    shown.js("document.getElementById('filter').focus()")
    shown.type("GAME_0001")
    assert set(shown.js(NAMES)) == {f"game_{number:05}" for number in range(10, 20)}
    assert shown.js("document.getElementById('count').textContent") == "10 of 60 games"
    shown.choose("state", "failed")
    assert shown.js(NAMES) == ["game_00010"]
    shown.js("document.getElementById('filter').select()")
    shown.type("no such game")
    assert shown.js(NAMES) == []
    assert shown.js("document.getElementById('count').textContent") == "0 of 60 games"


def test_a_part_of_an_error_finds_the_games_that_have_it(shown: Tab) -> None:
    shown.js("document.getElementById('filter').focus()")
    shown.type("checkpoint_lost")
    assert set(shown.js(STATES)) == {"failed"}


def test_a_head_sorts_from_the_most_and_again_from_the_least(shown: Tab) -> None:
    sort = "document.querySelector('[data-column=lag_rows] button')"

    def numbers() -> list[int]:
        return [int(text.replace(",", "")) for text in shown.js(ROWS_WAITING)]

    shown.js(f"{sort}.click()")
    assert shown.js(f"{sort}.parentElement.getAttribute('aria-sort')") == "descending"
    assert numbers() == sorted(numbers(), reverse=True)
    assert numbers()[0] > 0
    shown.js(f"{sort}.click()")
    assert shown.js(f"{sort}.parentElement.getAttribute('aria-sort')") == "ascending"
    assert numbers() == sorted(numbers())
    assert shown.js("document.querySelectorAll('[aria-sort]').length") == 1


def test_everything_can_be_done_with_the_keyboard(shown: Tab) -> None:
    def tab_to(name: str, most: int = 80) -> None:
        for _ in range(most):
            shown.press("Tab")
            if shown.js(FOCUS) == name:
                return
        raise AssertionError(f"{name} has never the focus")

    shown.press("Tab")
    assert shown.js(FOCUS) == "Skip to the games"
    shown.press("Enter")
    assert shown.js("document.activeElement.id") == "games"
    tab_to("filter")
    shown.type("game_0004")
    tab_to("Rows waiting")
    shown.press("Enter")
    shown.press(" ")
    assert shown.js("document.activeElement.parentElement.getAttribute('aria-sort')") == "ascending"
    tab_to("game_00044")
    shown.press("Enter")
    opened = "document.querySelector('[data-key=game_00044]').getAttribute('aria-expanded')"
    # the table was drawn again, and the focus is where it was
    assert (shown.js(opened), shown.js(FOCUS)) == ("true", "game_00044")
    assert "silver/game_00044" in shown.js("document.querySelector('tr.detail').textContent")
    shown.press(" ")
    assert (shown.js(opened), shown.js("document.querySelectorAll('tr.detail').length")) == ("false", 0)


def test_the_focus_goes_down_the_page_and_everything_to_use_has_a_name(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, busy(16, rounds=2), 1600)
    order: list[str] = []
    while not order or order[-1] != "game_00001":
        tab.press("Tab")
        order.append(tab.js(FOCUS))
        assert len(order) < 40
    heads = ["Game", "State", "Rows waiting", "Waiting for", "Fresh, p95", "Rows/s", "Last success", "Quarantine"]
    heads += ["Versions", "Work", "Share of cost", "Files", "Size", "Cluster"]
    region = tab.js("document.querySelector('.scroll').textContent")
    assert order[: 4 + len(heads)] == ["Skip to the games", "filter", "state", region, *heads]
    assert (
        order[4 + len(heads) :]
        == tab.js("[...document.querySelectorAll('#body button')].map((b) => b.dataset.key)")[
            : len(order) - 4 - len(heads)
        ]
    )
    tab.command("Accessibility.enable")
    nodes = tab.command("Accessibility.getFullAXTree")["nodes"]
    tab.command("Accessibility.disable")
    used = [node for node in nodes if node.get("role", {}).get("value") in {"button", "searchbox", "combobox", "link"}]
    assert len(used) > 20
    assert [node for node in used if not node["name"]["value"]] == []


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_moves_by_itself(tab: Tab, tmp_path: Path, sixty: Status, width: int) -> None:
    show(tab, tmp_path, sixty, width)
    assert tab.js(MOVING) == []
    tab.js("document.body.style.transition = 'color 1s'")
    assert tab.js(MOVING) == ["BODY"]


def test_what_has_the_focus_by_keyboard_is_seen(shown: Tab) -> None:
    shown.js("document.getElementById('filter').focus()")
    for _ in range(6):
        shown.press("Tab")
        style = shown.js(OUTLINE)
        assert style == ["solid", "2px"]


# 320: what WCAG 2.2, 1.4.10 asks for; the others: phones, and both ends of each breadth that has its own columns
@pytest.mark.parametrize("width", [320, 390, 880, 881, 1250, 1251, 1510, 1511, 1920])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_cut_off_and_all_text_has_contrast(
    tab: Tab, tmp_path: Path, sixty: Status, width: int, dark: bool
) -> None:
    show(tab, tmp_path, sixty, width, dark)
    tab.js("document.querySelectorAll('td.name button').forEach((one, at) => at < 6 && one.click())")
    assert tab.js("document.documentElement.scrollWidth") == width
    assert (
        tab.js("[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length")
        == 0
    )
    assert tab.js(CUT_OFF) == []
    assert tab.js(PALE) == []
    assert tab.js(FAINT) == []


@pytest.mark.parametrize("width", [360, 1440])
def test_what_is_to_be_touched_is_large_enough(tab: Tab, tmp_path: Path, sixty: Status, width: int) -> None:
    show(tab, tmp_path, sixty, width)
    # WCAG 2.2, 2.5.8: 24 pixels
    small = """[...document.querySelectorAll('button, input, select')].filter((one) => one.offsetParent)
        .map((one) => [one.textContent, one.getBoundingClientRect()])
        .filter(([, box]) => box.height < 24 || box.width < 24).map(([text, box]) => [text, box.width, box.height])"""
    # a link in a line of text may be as small as its text; a game's name may be two letters
    assert [one for one in tab.js(small) if one[2] < 24] == []


def test_on_a_phone_games_are_cards_that_can_be_sorted_too(tab: Tab, tmp_path: Path, sixty: Status) -> None:
    show(tab, tmp_path, sixty, 360)
    assert (
        tab.js("getComputedStyle(document.getElementById('head')).display") == "none"
        or tab.js("document.getElementById('head').getBoundingClientRect().height") == 0
    )
    tab.choose("sort", "name down")
    found = tab.js(NAMES)
    assert found.index("game_00045") < found.index("game_00001")
    assert tab.js("document.querySelector('#body td.name').getBoundingClientRect().width") > 250


def test_an_address_with_a_game_opens_it(tab: Tab, tmp_path: Path, sixty: Status) -> None:
    show(tab, tmp_path, sixty, fragment="#game=game_00031")
    assert tab.js("document.querySelector('[data-key=game_00031]').getAttribute('aria-expanded')") == "true"
    assert tab.js(FOCUS) == "game_00031"
    show(tab, tmp_path, sixty, fragment="#game=__proto__")
    assert tab.js("document.querySelectorAll('tr.detail').length") == 0
    assert tab.complaints() == []


def test_a_root_without_games_says_what_to_do(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, busy(0))
    assert "`demux run` makes one" in tab.js("document.getElementById('tiles').textContent")
    assert tab.js("document.querySelectorAll('.empty').length") == 1
    assert tab.complaints() == []


def test_of_ten_thousand_games_only_a_hundred_are_in_the_page_whatever_is_done(tab: Tab, tmp_path: Path) -> None:
    facts = Facts(
        games={f"game_{number:05}": known(f"game_{number:05}", f"cluster_{number // 20}") for number in range(10_000)},
        records=[record(f"game_{number:05}", 60, error=(f"KIND_{number}", "Why.")) for number in range(300)],
    )
    show(tab, tmp_path, status_of("/root", facts, NOW))
    rows = "document.querySelectorAll('#body tr').length"
    page_number = "document.getElementById('page').textContent"
    assert (tab.js(rows), tab.js(page_number)) == (100, "Page 1 of 100")
    # 500 clusters, 300 kinds of failure
    assert tab.js("document.querySelectorAll('#clusters tbody tr').length") == 100
    assert "and 400 more" in tab.js("document.getElementById('clusters').textContent")
    assert tab.js("document.querySelector('#clusters td').textContent") == "cluster_0"
    assert tab.js("document.querySelectorAll('#problem-list li').length") == 21
    assert "and 280 more" in tab.js("document.getElementById('problem-list').textContent")
    tab.js("document.getElementById('filter').focus()")
    for key, left in (("g", 10_000), ("ame_099", 100), ("7", 10)):
        tab.type(key)
        assert tab.js("document.getElementById('count').textContent").startswith(f"{left:,} ")
    tab.js("document.getElementById('filter').select()")
    tab.press("Backspace")
    tab.js("document.querySelectorAll('#head button').forEach((one) => one.click())")
    tab.js("document.getElementById('next').click()")
    assert (tab.js(rows), tab.js(page_number)) == (100, "Page 2 of 100")
    assert tab.js("document.querySelectorAll('*').length") < 4_000
    assert tab.complaints() == []


def test_a_page_in_a_file_does_not_ask_for_news(shown: Tab) -> None:
    assert shown.js("document.getElementById('connection').textContent") == "a page in a file: as it was then"
    assert shown.js("document.getElementById('pause').hidden") is True


# text whose box sticks out of the window, or of a box that hides what sticks out
CUT_OFF = """[...document.querySelectorAll('main *, header *')].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && !one.closest('.scroll') && (box.right > innerWidth + 1 || box.left < -1);
}).map((one) => one.outerHTML.slice(0, 80))"""

# so whoever asks for reduced motion has it
MOVING = """[...document.querySelectorAll('*')].filter((one) => {
    const style = getComputedStyle(one);
    return style.animationName !== 'none' || parseFloat(style.transitionDuration) || style.scrollBehavior !== 'auto';
}).map((one) => one.tagName)"""

CONTRAST = """
    const numbers = (text) => {
        const found = text.match(/[\\d.]+/g).map(Number);
        return found.length < 4 ? [...found, 1] : found;
    };
    const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
    const behind = (one) => {
        if (!one) return [255, 255, 255];
        const own = numbers(getComputedStyle(one).backgroundColor);
        return own[3] === 1 ? own : over(own, behind(one.parentElement));
    };
    const opacity = (one) => one ? getComputedStyle(one).opacity * opacity(one.parentElement) : 1;
    // of a colour in front of what an element stands on
    const contrast = (colour, one, more = 1) => {
        const [r, g, b, alpha] = numbers(colour), back = behind(one);
        const found = [light(over([r, g, b, alpha * more * opacity(one)], back)), light(back)];
        return (Math.max(...found) + 0.05) / (Math.min(...found) + 0.05);
    };
    const said = (one, found) => `${one.id || one.getAttribute('class') || one.tagName} ${found.toFixed(2)}`;
"""

# WCAG 2.2, 1.4.3: 4.5 to 1 for text; what is disabled does not count
PALE = (
    "(() => {"
    + CONTRAST
    + """
    const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    while (walk.nextNode()) {
        const one = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !one.offsetParent) continue;
        if (one.closest('script, style, :disabled, .skip')) continue;
        seen += 1;
        const here = contrast(getComputedStyle(one).color, one);
        if (here < 4.5) found.add(said(one, here));
    }
    return seen > 100 ? [...found] : ['there is no text'];
})()"""
)

# WCAG 2.2, 1.4.11: 3 to 1 for edges of what is used, lines of plots, arrows of heads, the mark of the focus
FAINT = (
    "(() => {"
    + CONTRAST
    + """
    const found = [];
    const look = (selector, least, colour, stands = (one) => one, more = () => 1) => {
        const all = [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length);
        if (all.length < least) found.push(`${selector}: ${all.length}`);
        for (const one of all) {
            const here = contrast(colour(one), stands(one), more(one));
            if (here < 3) found.push(said(one, here));
        }
    };
    const around = (one) => one.parentElement;
    look('input, select, .pages button:enabled', 2, (one) => getComputedStyle(one).borderTopColor, around);
    look('svg .line', 3, (one) => getComputedStyle(one).stroke);
    look('th button', innerWidth > 880 ? 7 : 0, (one) => getComputedStyle(one, '::after').color, undefined,
        (one) => getComputedStyle(one, '::after').opacity);
    look('.state', 10, (one) => getComputedStyle(one, '::before').backgroundColor === 'rgba(0, 0, 0, 0)'
        ? getComputedStyle(one, '::before').borderTopColor : getComputedStyle(one, '::before').backgroundColor);
    const filter = document.getElementById('filter');
    filter.focus({ focusVisible: true });
    look('#filter', 1, (one) => getComputedStyle(one).outlineColor, around);
    return found;
})()"""
)


def test_the_measures_of_contrast_find_what_is_pale_and_what_is_faint(shown: Tab) -> None:
    assert (shown.js(PALE), shown.js(FAINT)) == ([], [])
    shown.js("document.getElementById('root').style.color = '#999'")
    shown.js("document.getElementById('read-at').style.opacity = 0.5")
    shown.js("document.getElementById('filter').style.borderColor = '#ccc'")
    assert [found.split()[0] for found in shown.js(PALE)] == ["root", "read-at"]
    assert [found.split()[0] for found in shown.js(FAINT)] == ["filter"]


def test_the_pictures_of_the_page_are_made(tab: Tab, tmp_path: Path) -> None:
    take(tab, tmp_path, tmp_path / "status.html")
    for name, width, height, *_ in PICTURES:
        head = (tmp_path / f"{name}.png").read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:]) == (width, height)
