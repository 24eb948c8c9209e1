"""Alerts for the Prometheus operator: off unless asked for, and about series that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from chart_rendering import of_kind, render
from gpumem_operator.metrics import controller, enforcement, growth, scaling, tenants, usage
from gpumem_operator.scaling import reasons
from gpumem_operator.webhook import telemetry

ASKED = {"metrics": {"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}}}
OF_ITSELF = (controller.LEADER, controller.SLIPPED_PODS, telemetry.CERTIFICATE_EXPIRY)
LABELS = {
    "gpumem_seconds_to_limit": set(growth._LABELS),
    "gpumem_used_bytes": {*usage._POD, "gpu"},
    "gpumem_limit_bytes": {*usage._POD},
    "gpumem_unknown": {*usage._POD, "gpu", "reason"},
    "gpumem_gpu_unknown": {*usage._CARD, "reason"},
    "gpumem_unattributed_bytes": set(usage._CARD),
    **{f"gpumem_gpu_{part}_bytes": set(usage._CARD) for part in usage._CARD_PARTS},
    **{series: set(tenants.LABELS) for series, _, _ in tenants._SERIES},
    "gpumem_scaling_reason": {*scaling._TARGET, "reason"},
    enforcement._OVER._name: set(enforcement._OVER._labelnames),
    **{gauge._name: set(gauge._labelnames) for gauge in OF_ITSELF},
    f"{telemetry.REVIEWS._name}_total": set(telemetry.REVIEWS._labelnames),
    "apiserver_admission_webhook_rejection_count": {
        *("error_type", "name", "operation", "rejection_code", "type")
    },
}
"""By series, as the programs make them; the last one is the API server's."""
TEMPLATE = re.compile(r"\$labels\.\w+|\$value(?: \| (humanize1024|humanizeDuration))?")


def alerts() -> list[dict[str, Any]]:
    [rule] = of_kind(render(ASKED), "PrometheusRule")
    [group] = rule["spec"]["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def selectors(expression: Any) -> Iterator[promql_parser.VectorSelector]:
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for part in ("lhs", "rhs", "expr", "vector_selector"):
        if hasattr(expression, part):
            yield from selectors(getattr(expression, part))
    for argument in getattr(expression, "args", ()):
        yield from selectors(argument)


def test_no_alerts_are_made_unless_asked_for() -> None:
    assert of_kind(render(), "PrometheusRule") == []


def test_alerts_bear_the_labels_by_which_a_prometheus_finds_them() -> None:
    [rule] = of_kind(render(ASKED), "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_is_about_series_and_labels_that_there_are(alert: dict[str, Any]) -> None:
    asked = list(selectors(promql_parser.parse(alert["expr"])))
    assert asked
    assert {one.name for one in asked} <= LABELS.keys()
    for one in asked:
        assert {matcher.name for matcher in one.matchers.matchers} <= LABELS[one.name]
    matched = re.findall(r"on \(([^)]*)\)", alert["expr"])
    told = re.findall(r"\$labels\.(\w+)", "".join(alert["annotations"].values()))
    assert {*told, *", ".join(matched).split(", ")} - {""} <= LABELS[asked[0].name]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_can_be_loaded_by_prometheus_and_tells_the_next_step(
    alert: dict[str, Any],
) -> None:
    assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"[A-Za-z_]\w*", alert["alert"])
    assert re.fullmatch(r"\d+[smhd]", alert["for"])
    assert "Next step: " in alert["annotations"]["description"]
    for text in alert["annotations"].values():
        inside = re.findall(r"{{(.*?)}}", text)
        assert len(inside) == text.count("{{") == text.count("}}")
        assert all(TEMPLATE.fullmatch(one.strip()) for one in inside), text


def test_the_alert_on_scaling_knows_the_reasons_that_stay_until_somebody_acts() -> None:
    [expression] = [one["expr"] for one in alerts() if one["alert"] == "GPUMemoryNotScaled"]
    [selector] = selectors(promql_parser.parse(expression))
    [matcher] = selector.matchers.matchers
    assert set(matcher.value.split("|")) <= {
        value for name, value in vars(reasons).items() if name.isupper()
    }


def test_every_alert_stands_in_the_page_for_whoever_is_on_call() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    told = set(re.findall(r"^\| `(GPU\w+)` \|", page, re.MULTILINE))
    assert told == {alert["alert"] for alert in alerts()}
