"""docs/status.md, the dashboard and the alerts name the metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from demux.cli.inspect.serve import PORT
from demux.operations.status.prometheus import MOST_GAMES, ServerCounts, metrics
from tests.support.data.statuses import busy

ROOT = Path(__file__).parents[5]
TEXT = metrics(busy(30), ServerCounts())
METRICS = dict(re.findall(r"^# HELP (\S+) (.*)\.$", TEXT, re.MULTILINE))


def labels_of(metric: str) -> set[str]:
    return {
        label
        for line in re.findall(rf"^{metric}\{{(.*)\}} ", TEXT, re.MULTILINE)
        for label in re.findall(r'(\w+)="', line)
    }


def test_the_page_has_each_metric_with_its_labels() -> None:
    page = (ROOT / "docs/status.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(demux_\w+)` \| (.*?) \| (.*) \|$", page, re.MULTILINE)
    assert {name: text for name, _, text in rows} == METRICS
    assert {name: set(re.findall(r"\w+", labels)) for name, labels, _ in rows} == {
        name: labels_of(name) for name in METRICS
    }
    assert f"The {MOST_GAMES} games" in page
    assert f"127.0.0.1:{PORT}" in page


def test_alerts_and_dashboard_ask_for_metrics_and_labels_that_there_are() -> None:
    rules = YAML(typ="safe").load(ROOT / "deploy/alerts.yml")["groups"][0]["rules"]
    panels = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    asked = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    assert {name for expression in asked for name in re.findall(r"demux_\w+", expression)} <= METRICS.keys()
    for expression in asked:
        assert expression.count("(") == expression.count(")")
        assert set(re.findall(r'state="(\w+)"', expression)) <= {"failed", "waiting", "behind", "current"}


def test_each_alert_says_how_bad_it_is_and_what_it_means() -> None:
    rules: list[dict[str, Any]] = YAML(typ="safe").load(ROOT / "deploy/alerts.yml")["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert {rule["labels"]["severity"] for rule in rules} == {"critical", "warning", "info"}
    assert all({"summary", "description"} == rule["annotations"].keys() and rule["for"] for rule in rules)


def test_panels_of_the_dashboard_stand_beside_each_other() -> None:
    panels = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    cells = [
        (panel["gridPos"]["x"] + right, panel["gridPos"]["y"] + down)
        for panel in panels
        for right in range(panel["gridPos"]["w"])
        for down in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(right for right, _ in cells) == 23
    assert len({panel["id"] for panel in panels}) == len(panels)
