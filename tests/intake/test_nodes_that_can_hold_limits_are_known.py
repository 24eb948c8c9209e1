"""From an agent's report to the node's label, and to what an author is told at admission."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from gpumem_operator import names
from intake.senders import POLICY, Cast
from report_builders import raw_report

pytestmark = pytest.mark.cluster

WAITS = "no node can hold limits by Driver"
NUMBERS = itertools.count()


def created(cast: Cast) -> tuple[str, bool]:
    """The name of a new pod of the policy, and whether its author was told that it waits."""
    name = f"train-{next(NUMBERS)}"
    main = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": cast.namespace},
        "spec": {"containers": [main]},
    }
    done = cast.cluster.kubectl("create", "-f", "-", input=json.dumps(pod))
    return name, WAITS in done.stderr


def labels(cast: Cast, node: str) -> dict[str, Any]:
    found = json.loads(cast.cluster.kubectl("get", "node", node, "-o", "json").stdout)
    return dict(found["metadata"].get("labels") or {})


def enforcers(cast: Cast) -> list[str] | None:
    name = f"{cast.operator.release}-nodes"
    found = cast.get("configmap", name, namespace=cast.operator.namespace)
    text = (found.get("data") or {}).get("nodes.json")
    return list(json.loads(text)["enforcers"]) if text else None


def test_a_label_a_summary_and_a_warning_follow_what_an_agent_found(cast: Cast) -> None:
    node = "agent-6"
    cast.pod("waits-for-the-account")
    wanted = json.dumps({"spec": {"enforcement": {"minimumEnforcer": "Driver"}}})
    cast.kubectl("patch", "gmp", POLICY, "--type=merge", "-p", wanted)
    cast.until(lambda: enforcers(cast) == [])
    cast.until(lambda: created(cast)[1])

    token = cast.agent(node)
    report = raw_report(agent=True, sequence=1) | {"driverLimits": "Supported"}
    assert cast.send(token, report).status == 200
    cast.until(lambda: labels(cast, node).get(names.DRIVER_NODE_LABEL) == "true")
    cast.until(lambda: enforcers(cast) == ["Driver"])
    name = cast.until(lambda: next((one for one, waits in [created(cast)] if not waits), None))
    node_affinity = cast.get("pod", name)["spec"]["affinity"]["nodeAffinity"]
    [term] = node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one["key"] for one in term["matchExpressions"]] == [names.DRIVER_NODE_LABEL]

    assert cast.send(token, report | {"sequence": 2, "driverLimits": "Unsupported"}).status == 200
    cast.until(lambda: names.DRIVER_NODE_LABEL not in labels(cast, node))
    cast.until(lambda: enforcers(cast) == [])
