"""Alerts for the Prometheus operator: off unless asked for, and about series that there are."""

from __future__ import annotations

import inspect
import re

from chart_rendering import of_kind, render
from gpumem_operator.metrics import growth, usage

ASKED = {"metrics": {"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}}}


def test_no_alerts_are_made_unless_asked_for() -> None:
    assert of_kind(render(), "PrometheusRule") == []


def test_each_alert_is_about_series_that_the_leader_has() -> None:
    [rule] = of_kind(render(ASKED), "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    [group] = rule["spec"]["groups"]
    known = inspect.getsource(usage) + inspect.getsource(growth)
    parts = {"gpumem_gpu_free_bytes", "gpumem_gpu_total_bytes", "gpumem_gpu_reserved_bytes"}
    for alert in group["rules"]:
        series = set(re.findall(r"gpumem_\w+", alert["expr"]))
        assert series
        assert all(f'"{one}"' in known for one in series - parts), series
        assert "Next step" in alert["annotations"]["description"]
        assert "{{ $labels" in alert["annotations"]["summary"]


def test_each_alert_can_be_loaded_by_prometheus() -> None:
    """What its own tool would say first; the tool is not here."""
    [rule] = of_kind(render(ASKED), "PrometheusRule")
    for group in rule["spec"]["groups"]:
        for alert in group["rules"]:
            assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
            assert re.fullmatch(r"[A-Za-z_]\w*", alert["alert"])
            assert re.fullmatch(r"\d+[smhd]", alert["for"])
            assert are_balanced(alert["expr"])
            for text in alert["annotations"].values():
                inside = re.findall(r"{{(.*?)}}", text)
                assert len(inside) == text.count("{{") == text.count("}}")
                assert all(TEMPLATE.fullmatch(one.strip()) for one in inside), text


def test_alerts_name_labels_that_their_series_have() -> None:
    [rule] = of_kind(render(ASKED), "PrometheusRule")
    for alert in rule["spec"]["groups"][0]["rules"]:
        series = re.match(r"\w+", alert["expr"])
        assert series is not None
        text = "".join(alert["annotations"].values())
        matched = re.findall(r"on \(([^)]*)\)", alert["expr"])
        named = {*re.findall(r"\$labels\.(\w+)", text), *", ".join(matched).split(", ")} - {""}
        assert named <= LABELS[series[0]], alert["alert"]


TEMPLATE = re.compile(r"\$labels\.\w+|\$value \| (humanize1024|humanizeDuration)")
LABELS = {
    "gpumem_seconds_to_limit": set(growth._LABELS),
    "gpumem_used_bytes": {*usage._POD, "gpu"},
    "gpumem_gpu_free_bytes": set(usage._CARD),
    "gpumem_unknown": {*usage._POD, "gpu", "reason"},
    "gpumem_gpu_unknown": {*usage._CARD, "reason"},
    "gpumem_unattributed_bytes": set(usage._CARD),
}


def are_balanced(expression: str) -> bool:
    depth = 0
    for character in expression:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0
