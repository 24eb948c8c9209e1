"""Of nodes, the controller's account can change what the operator is for, and nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from chart.actors import Actor
from devcluster.installation import Installation
from gpumem_operator import names

pytestmark = pytest.mark.cluster
STATUS = "--subresource=status"
OFFERED = {
    "status": {
        "capacity": {"nvidia.com/gpu": "8", names.MEMORY_RESOURCE: "8Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
}
AMOUNTS = {names.MEMORY_RESOURCE: "16Gi"}


@pytest.fixture
def gpu_node(guarded: Installation) -> Iterator[str]:
    name = f"guarded-{uuid.uuid4().hex[:6]}"
    meta = {"name": name, "labels": {"team": "research"}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}}
    kubectl = guarded.cluster.kubectl
    kubectl("create", "-f", "-", input=json.dumps(body))
    kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps(OFFERED))
    yield name
    kubectl("delete", "node", name)


@pytest.mark.parametrize("label", [names.DRIVER_NODE_LABEL, names.MPS_NODE_LABEL])
def test_the_controller_says_what_a_node_can_hold_limits_with(
    controller: Actor, gpu_node: str, label: str
) -> None:
    for value in ("true", None):
        patch = json.dumps({"metadata": {"labels": {label: value}}})
        assert controller.does("patch", "node", gpu_node, "-p", patch) == ""


def test_the_controller_says_how_much_memory_a_node_offers(
    controller: Actor, gpu_node: str
) -> None:
    for amounts in (AMOUNTS, {names.MEMORY_RESOURCE: None}):
        status = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
        assert (
            controller.does("patch", "node", gpu_node, "--subresource=status", "-p", status) == ""
        )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"metadata": {"labels": {"team": "mine"}}}, "label team"),
        ({"metadata": {"labels": {"team": None}}}, "label team"),
        ({"metadata": {"labels": {f"{names.GROUP}/other": "1"}}}, f"label {names.GROUP}/other"),
        ({"metadata": {"annotations": {"note": "1"}}}, "metadata.annotations"),
        ({"metadata": {"finalizers": ["example.com/stay"]}}, "metadata.finalizers"),
        ({"spec": {"unschedulable": True}}, "spec"),
        ({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}, "spec"),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_the_controller_can_change_nothing_else_of_a_node(
    controller: Actor, gpu_node: str, change: object, named: str
) -> None:
    complaint = controller.does("patch", "node", gpu_node, "-p", json.dumps(change))
    assert f"may not change {named} of node {gpu_node}" in complaint


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ({"capacity": {"nvidia.com/gpu": "0"}}, "capacity of nvidia.com/gpu"),
        ({"capacity": {"nvidia.com/gpu": None}}, "capacity of nvidia.com/gpu"),
        ({"allocatable": {"cpu": "1"}}, "allocatable cpu"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "status.conditions"),
        ({"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}, "status.addresses"),
        ({"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}, "status.daemonEndpoints"),
        ({"images": [{"names": ["one"], "sizeBytes": 1}]}, "status.images"),
        ({"nodeInfo": {"architecture": "other"}}, "status.nodeInfo"),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_nor_by_way_of_its_status(
    controller: Actor, gpu_node: str, status: object, named: str
) -> None:
    patch = json.dumps({"status": status})
    complaint = controller.does("patch", "node", gpu_node, STATUS, "-p", patch)
    assert f"may not change {named} of node {gpu_node}" in complaint


def test_the_nodes_of_everybody_else_are_none_of_the_guards_business(guarded: Installation) -> None:
    admin = Actor(guarded, "node-admin")
    role = ["--verb=*", "--resource=nodes,nodes/status"]
    guarded.cluster.kubectl("create", "clusterrole", "node-admin", *role)
    bound = ["--clusterrole=node-admin", "--user=node-admin"]
    guarded.cluster.kubectl("create", "clusterrolebinding", "node-admin", *bound)
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "theirs"}, "spec": {}}

    assert admin.does("create", "-f", "-", input=body) == ""
    assert admin.does("label", "node", "theirs", f"{names.DRIVER_NODE_LABEL}=true", "a=b") == ""
    assert admin.does("cordon", "theirs") == ""
    assert admin.does("delete", "node", "theirs") == ""
