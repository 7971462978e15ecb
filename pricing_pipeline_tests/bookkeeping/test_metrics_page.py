"""The page of metrics, the dashboard and the rules for Prometheus name what the code exports, and all of it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pricing_pipeline.api.metrics import AGE, MISSING, REPLICA_LAG, REPLICA_USED, TOOK, RequestTimes
from pricing_pipeline.operations.figures import COUNTER, GAUGE, HISTOGRAM, SOURCES
from pricing_pipeline_tests.support.pages import ROOT

PAGE = (ROOT / "docs/metrics.md").read_text()
DASHBOARD = json.loads((ROOT / "deploy/grafana/pricing-pipeline.json").read_text())
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
SCRAPE = ROOT / "deploy/prometheus/scrape.yaml"
NOT_ON_THE_DASHBOARD = {
    "pricing_api_start_time_seconds": "tells Prometheus alone that counters began anew",
    "pricing_replica_used": "most have no replica",
    "pricing_replica_lag_seconds": "most have no replica",
}

Described = dict[str, tuple[str, frozenset[str], str]]


def exported() -> Described:
    """Each metric with its kind, labels and meaning."""
    described: Described = {
        metric.name: (metric.kind, frozenset(source.labels), metric.says)
        for source in SOURCES
        for metric in source.metrics
    }
    described["pricing_metrics_missing"] = GAUGE, frozenset({"source"}), MISSING
    described["pricing_metrics_age_seconds"] = GAUGE, frozenset({"source"}), AGE
    described["pricing_metrics_seconds"] = GAUGE, frozenset(), TOOK
    described["pricing_replica_used"] = GAUGE, frozenset(), REPLICA_USED
    described["pricing_replica_lag_seconds"] = GAUGE, frozenset(), REPLICA_LAG
    times = RequestTimes()
    times.note({"type": "http", "method": "GET"}, 200, 0.1)
    for family in times.registry.collect():
        labels = frozenset(label for sample in family.samples for label in sample.labels)
        described[family.name] = family.type, labels - {"le"}, family.documentation
    return described


def test_b22_the_page_names_each_metric() -> None:
    """What each means, the scrape itself says (HELP)."""
    assert set(re.findall(r"`(pricing_\w+)`", PAGE)) == exported().keys()


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression of the dashboard and the rules, with its place."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def named(expression: str) -> set[str]:
    """The metrics that an expression names, without what a histogram appends."""
    kinds = exported()
    found = set()
    for name in re.findall(r"\bpricing_\w+", expression):
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        found.add(base if kinds.get(base, ("",))[0] == HISTOGRAM else name)
    return found


@pytest.mark.parametrize(("place", "expression"), [*expressions()], ids=lambda value: value[:30])
def test_b22_each_expression_names_metrics_and_labels_that_exist(place: str, expression: str) -> None:
    metrics = exported()
    names = named(expression)
    assert names <= metrics.keys(), place
    allowed = frozenset({"le", "job"}).union(*(metrics[name][1] for name in names))
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    for listed in re.findall(r"\bby \(([^)]*)\)", expression):
        used |= {label.strip() for label in listed.split(",")}
    assert used <= allowed, place
    counters = {name for name in names if metrics[name][0] == COUNTER}
    for name in counters:
        assert re.search(rf"(rate|increase)\({name}", expression), "a counter is looked at by its growth"


def test_b22_legends_name_labels_that_the_expression_keeps() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            kept = {
                label.strip()
                for listed in re.findall(r"\bby \(([^)]*)\)", target["expr"])
                for label in listed.split(",")
            }
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_b22_every_metric_is_on_the_dashboard_or_deliberately_not() -> None:
    shown = {name for panel in DASHBOARD["panels"] for target in panel["targets"] for name in named(target["expr"])}
    assert shown | NOT_ON_THE_DASHBOARD.keys() == exported().keys()
    assert not shown & NOT_ON_THE_DASHBOARD.keys()


def test_b22_panels_do_not_overlap_and_have_names_of_their_own() -> None:
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


@pytest.fixture
def promtool() -> str:
    """Prometheus' own checker."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed; Debian has it in the package prometheus")
    return found


def test_b22_prometheus_reads_the_rules_and_every_expression(promtool: str, tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expression} for number, (_, expression) in enumerate(expressions())]
    panels = tmp_path / "panels.yaml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    subprocess.run([promtool, "check", "rules", ALERTS, panels], check=True)


def test_b22_prometheus_reads_the_scrape_configuration(promtool: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("pp_x")
    given = yaml.safe_load(SCRAPE.read_text())
    given["scrape_configs"][0]["authorization"]["credentials_file"] = str(token)
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({**given, "rule_files": [str(ALERTS)]}))
    subprocess.run([promtool, "check", "config", config], check=True)


def test_b22_prometheus_sends_a_token_that_the_file_says_how_to_make() -> None:
    (job,) = yaml.safe_load(SCRAPE.read_text())["scrape_configs"]
    assert job["authorization"]["type"] == "Bearer"
    assert job.get("metrics_path", "/metrics") == "/metrics"
    (command,) = re.findall(r"^#\s+pricing-pipeline (token add .+)$", SCRAPE.read_text(), re.MULTILINE)
    words = shlex.split(command)
    assert words[words.index("--scope") + 1] == "read"


def test_b22_links_in_the_rules_find_their_pages() -> None:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            page, _, anchor = rule["annotations"]["runbook"].partition("#")
            text = (ROOT / page).read_text()
            headings = {
                re.sub(r"[^\w-]", "", h.lower().replace(" ", "-")) for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            }
            assert not anchor or anchor in headings, rule["alert"]
