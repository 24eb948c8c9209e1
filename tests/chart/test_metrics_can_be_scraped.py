"""Prometheus finds every pod that has series, by what the chart makes and by what the docs show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rendering import NAMESPACE, Object, of_kind, refusal, render

USAGE = Path(__file__).parents[2] / "docs" / "usage.md"
ROLES = {"webhook", "controller"}
Values = dict[str, Any]


def documented(key: str) -> Values:
    """The block of YAML in docs/usage.md that begins with this key."""
    [block] = re.findall(rf"```yaml\n({key}:.*?)```", USAGE.read_text(), re.DOTALL)
    loaded: Values = yaml.safe_load(block)
    return loaded


def templates(values: Values) -> dict[str, Object]:
    """The pod template of each Deployment, by its role."""
    return {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["template"]
        for one in of_kind(render(values), "Deployment")
    }


def ports(template: Object) -> dict[str, int]:
    [container] = template["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def health_port(template: Object) -> int:
    """Where the process serves /metrics."""
    [container] = template["spec"]["containers"]
    [flag] = [flag for flag in container["args"] if flag.startswith("--health-port=")]
    return int(flag.partition("=")[2])


def test_nothing_is_made_for_a_prometheus_that_nobody_named() -> None:
    assert of_kind(render(), "PodMonitor") == []
    for template in templates({}).values():
        assert not any(key.startswith("prometheus") for key in template["metadata"]["annotations"])


def test_the_documented_pod_monitor_selects_all_pods_of_both_roles_at_their_metrics() -> None:
    [monitor] = of_kind(render(documented("metrics")), "PodMonitor")
    selector = monitor["spec"]["selector"]
    [wanted] = selector["matchExpressions"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]

    assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    assert (endpoint["path"], endpoint["honorLabels"]) == ("/metrics", True)
    assert (wanted["operator"], set(wanted["values"])) == ("In", ROLES)
    found = templates({})
    assert found.keys() == ROLES
    for role, template in found.items():
        labels = template["metadata"]["labels"]
        assert selector["matchLabels"].items() <= labels.items()
        assert labels[wanted["key"]] == role
        assert ports(template)[endpoint["port"]] == health_port(template)


def test_the_interval_is_prometheus_s_own_unless_given() -> None:
    def endpoint(**given: str) -> Object:
        values = {"metrics": {"podMonitor": {"enabled": True, **given}}}
        [monitor] = of_kind(render(values), "PodMonitor")
        [only] = monitor["spec"]["podMetricsEndpoints"]
        found: Object = only
        return found

    assert "interval" not in endpoint()
    assert endpoint(interval="15s")["interval"] == "15s"


def test_annotations_name_the_port_that_answers() -> None:
    for template in templates({"metrics": {"annotations": True}}).values():
        told = template["metadata"]["annotations"]
        assert told["prometheus.io/scrape"] == "true"
        assert told["prometheus.io/path"] == "/metrics"
        assert int(told["prometheus.io/port"]) == health_port(template)


def test_the_documented_scrape_configuration_keeps_these_pods_and_this_port() -> None:
    [job] = documented("scrape_configs")["scrape_configs"]
    kept = {rule["source_labels"][0]: rule["regex"] for rule in job["relabel_configs"][:2]}
    app, port = kept.values()

    assert list(kept) == [
        "__meta_kubernetes_pod_label_app_kubernetes_io_name",
        "__meta_kubernetes_pod_container_port_name",
    ]
    assert job["honor_labels"] is True
    assert job["kubernetes_sd_configs"][0]["namespaces"]["names"] == [NAMESPACE]
    for template in templates({}).values():
        assert template["metadata"]["labels"]["app.kubernetes.io/name"] == app
        assert ports(template)[port] == health_port(template)


@pytest.mark.parametrize(
    "wrong",
    [{"enabled": True, "interval": "often"}, {"labels": {"a": 1}}, {"label": {}}],
    ids=["an interval that is none", "a label that is no text", "a key that is not known"],
)
def test_wrong_values_are_refused(wrong: Values) -> None:
    assert "podMonitor" in refusal({"metrics": {"podMonitor": wrong}})
