"""Alerts and dashboard use metrics, labels and states that exist, and each alert has a runbook."""

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest

from ha.elector.model import Link
from namenode_sim.metrics import STATES
from tests import ROOT
from tests.deploy.monitoring.documented import DOCUMENT, all_metrics, section

FOLDER: Final = ROOT / "deploy" / "monitoring"
ALERTS: Final = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
DASHBOARD: Final = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
METRIC: Final = re.compile(r"\b((?:nnha|process)_\w+)(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
OF_EVERY_TARGET: Final = {"instance", "job", "cluster"}
STATES_OF: Final = {
    "nnha_node_state": set(STATES),
    "nnha_datanodes": {"live", "stale", "dead"},
    "nnha_each_datanode_state": {"live", "stale", "dead"},
    "nnha_node_wanted_state": {"active", "standby", "none"},
    "nnha_zk_session_state": {str(link) for link in Link},
}


def alerts() -> dict[str, dict[str, str]]:
    """Return the rules, from the few shapes of YAML that the file uses."""
    found: dict[str, dict[str, str]] = {}
    for block in re.split(r"^  - alert: ", ALERTS, flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        fields = re.findall(r"^ +(\w+): (?:'((?:[^']|'')*)'|(.*))$", rest, re.MULTILINE)
        found[name] = {key: (quoted or plain).replace("''", "'") for key, quoted, plain in fields}
    return found


def dashboard_expressions() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


EXPRESSIONS = {
    **{f"alert {name}": rule["expr"] for name, rule in alerts().items()},
    **{
        f"panel {number} {title}": expression
        for number, (title, expression) in enumerate(dashboard_expressions())
    },
}


def base(name: str) -> str:
    """Return the metric of a series: a histogram has three."""
    known = all_metrics()
    for suffix in ("_bucket", "_sum", "_count"):
        stem = name.removesuffix(suffix)
        if stem != name and stem in known:
            assert known[stem].kind == "histogram"
            return stem
    return name


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_every_metric_and_label_exists(where: str) -> None:
    expression = EXPRESSIONS[where]
    used = [found for found in METRIC.findall(expression) if not found[0].startswith("process_")]
    assert METRIC.search(expression) or "up{" in expression or "ALERTS{" in expression
    for name, matchers in used:
        metric = all_metrics().get(base(name))
        assert metric is not None, f"{where}: there is no metric {name}"
        for label, value in MATCHER.findall(matchers):
            assert label in metric.labels | OF_EVERY_TARGET, f"{where}: {name} has no {label}"
            if label == "state":
                assert set(value.split("|")) <= STATES_OF[name]


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_every_expression_is_balanced_and_rates_are_of_counters(where: str) -> None:
    expression = EXPRESSIONS[where]
    for opened, closed in ("()", "{}", "[]"):
        assert expression.count(opened) == expression.count(closed)
    for name in re.findall(r"(?:rate|increase)\((nnha_\w+)", expression):
        assert all_metrics()[base(name)].kind in ("counter", "histogram"), name


def test_every_alert_is_whole_and_has_a_runbook() -> None:
    rules = alerts()
    assert len(rules) >= 20
    assert len(rules) == ALERTS.count("alert: ")
    runbook = section("Alerts")
    for name, rule in rules.items():
        assert re.fullmatch(r"\{severity: (critical|warning|info)\}", rule["labels"]), name
        assert len(rule["summary"]) > 10
        page = "{{ $externalLabels.nnha_docs }}/metrics.md"
        assert rule["runbook_url"] == f"{page}#{name.lower()}"
        assert f"### {name}\n\n{rule['summary']}" in runbook
        assert rule["action"] in runbook
    assert set(re.findall(r"^### (\w+)$", runbook, re.MULTILINE)) == rules.keys()


def test_every_metric_that_was_asked_for_is_there_or_has_a_reason() -> None:
    asked = section("Which daemon has what")
    rows = re.findall(r"^\| `(nnha_\w+)` \| (.+) \|$", asked, re.MULTILINE)
    known = all_metrics()
    assert len(rows) >= 60
    for name, where in rows:
        if where.startswith("absent: "):
            assert name not in known
            assert len(where) > 30
        else:
            present = name in known or name.removesuffix("_info") + "_info" in known
            assert present, f"{name} is said to be there, and is in no table of {DOCUMENT}"


def test_a_metric_that_is_not_there_would_be_seen() -> None:
    assert base("nnha_fence_duration_seconds_bucket") == "nnha_fence_duration_seconds"
    assert base("nnha_no_such_thing_bucket") not in all_metrics()
    assert METRIC.findall('sum(nnha_x{a="b"}) > nnha_y') == [("nnha_x", 'a="b"'), ("nnha_y", "")]
