"""Objects that a namespace's user may store, and that every process reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devcluster.installation import Installation
from endtoend.team import Team, pod

pytestmark = pytest.mark.cluster

DEPTH = 2000


def deeply_managed(raw: dict[str, Any]) -> str:
    """The object with managedFields that are nested deeper than Python's decoder goes."""
    entry = {
        "manager": "deep",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "DEEP",
    }
    metadata = {**raw["metadata"], "managedFields": [entry]}
    text = json.dumps({**raw, "metadata": metadata})
    return text.replace('"DEEP"', '{"f:a":' * DEPTH + "{}" + "}" * DEPTH)


def test_deep_managed_fields_stop_nobody(installation: Installation, team: Team) -> None:
    namespace: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"{team.name}-deep"},
    }
    labelled = pod("labelled", limits={"cpu": "1"})
    labelled["metadata"]["labels"] = {"gpumemory.dev/managed": "x"}
    pids = installation.webhook_pids + installation.controller_pids
    try:
        for raw in (namespace, labelled):
            path = "/api/v1/namespaces"
            if raw["kind"] == "Pod":
                path += f"/{team.name}/pods"
            made = installation.cluster.kubectl(
                "create", "--raw", path, "-f", "-", input=deeply_managed(raw), check=False
            )
            assert '"uid"' in made.stdout, made.stderr
        team.policy(limits={"default": "8Gi"})
        assert "created" in team.create(pod())
        team.until("get", "gmp", "training", "-o", "jsonpath={.status.pods.managed}", until="1")
        assert installation.webhook_pids + installation.controller_pids == pids
    finally:
        installation.cluster.kubectl("delete", "namespace", f"{team.name}-deep", "--wait=false")
