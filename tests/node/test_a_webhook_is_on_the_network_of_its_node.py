"""Where the API server reaches no pod, the webhook is on the network of its node."""

from __future__ import annotations

import pytest

from chart_rendering import ON_NODES
from devcluster.node import Node
from endtoend.team import Team
from node.release import role_pods, upgraded
from node.workload import holding, nvml_everywhere, restricted_pod_spec

pytestmark = pytest.mark.cluster


@nvml_everywhere
def test_the_api_server_asks_it_there(operator_in_pods: Node, team: Team) -> None:
    cluster = operator_in_pods.cluster
    port, health = (ON_NODES["webhook"][key] for key in ("port", "healthPort"))
    given = {"replicas": 1, **ON_NODES["webhook"]}
    values = ",".join(f"webhook.{key}={str(value).lower()}" for key, value in given.items())

    with upgraded(cluster, values):
        [webhook] = [
            pod
            for pod in role_pods(cluster)
            if "-webhook-" in pod["metadata"]["name"] and "deletionTimestamp" not in pod["metadata"]
        ]
        assert webhook["status"]["podIP"] == webhook["status"]["hostIP"]
        # By these the scheduler keeps a second one from the node.
        [container] = webhook["spec"]["containers"]
        assert [one["hostPort"] for one in container["ports"]] == [port, health]
        spec = restricted_pod_spec(holding(1024))
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": spec}
        assert "created" in team.create(raw)
        names = [one["name"] for one in team.get("pod", "asked")["spec"]["initContainers"]]
        assert names == ["gpumem-shim", "gpumem-sidecar"]
