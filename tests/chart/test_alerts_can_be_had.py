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
