"""Renders the chart with the helm that the development cluster uses."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from devcluster.binaries import find_binaries
from devcluster.installation import CHART

RELEASE = "gpu-memory-operator"
NAMESPACE = "gpumem-system"

Object = dict[str, Any]

ON_NODES: Object = {"webhook": {"hostNetwork": True, "port": 10443, "healthPort": 10081}}
"""Values by which the webhook is on the network of its node."""


@functools.cache
def helm_path() -> str:
    return str(find_binaries()["helm"])


def helm(
    *arguments: str, values: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm on the chart, with these values on top of the defaults."""
    command = [helm_path(), *arguments, "--namespace", NAMESPACE, "--values", "-"]
    return subprocess.run(
        command, input=yaml.safe_dump(dict(values or {})), capture_output=True, text=True
    )


def rendered_text(values: Mapping[str, Any] | None = None) -> str:
    result = helm("template", RELEASE, str(CHART), values=values)
    assert result.returncode == 0, result.stderr
    return result.stdout


def render(values: Mapping[str, Any] | None = None) -> list[Object]:
    """All manifests that these values give."""
    return [found for found in yaml.safe_load_all(rendered_text(values)) if found]


def refusal(values: Mapping[str, Any]) -> str:
    """What helm says about values that it does not take."""
    result = helm("template", RELEASE, str(CHART), values=values)
    assert result.returncode != 0, "these values were taken"
    return result.stderr


def of_kind(manifests: Sequence[Object], *kinds: str) -> list[Object]:
    return [found for found in manifests if found["kind"] in kinds]


def hooks(manifests: Sequence[Object]) -> dict[str, Object]:
    """Every entry of the webhook configurations, by its name up to the first dot."""
    configurations = of_kind(
        manifests, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
    )
    return {
        entry["name"].partition(".")[0]: entry
        for configuration in configurations
        for entry in configuration["webhooks"]
    }


def settings(manifests: Sequence[Object]) -> Object:
    """What the processes are given to read."""
    [content] = [
        found["data"]["settings.yaml"]
        for found in of_kind(manifests, "ConfigMap")
        if "settings.yaml" in (found.get("data") or {})
    ]
    loaded: Object = yaml.safe_load(content)
    return loaded
