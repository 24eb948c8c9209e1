"""Nodes offer GPU memory, and the real scheduler counts it."""

import uuid
from collections.abc import Iterator

import pytest

from controllers.cluster_view import View
from controllers.stored import Raw, node, pod
from devcluster.installation import Installation
from devcluster.simulated_node import SimulatedGpuNode

pytestmark = pytest.mark.cluster
CAPACITY = r".status.capacity.nvidia\.com/memory"
ALLOCATABLE = r".status.allocatable.nvidia\.com/memory"
CARD = 81559 * 2**20


@pytest.fixture
def gpu_node(view: View) -> Iterator[str]:
    name = f"gpu-{uuid.uuid4().hex[:6]}"
    body = node(name, memory="81559", count="8")
    view.create({**body, "spec": {}})
    view.wait(f"node/{name}", ALLOCATABLE, str(8 * CARD))
    yield name
    view.cluster.kubectl("delete", "node", name)


def status(view: View, name: str) -> Raw:
    found: Raw = view.get("node", name)["status"]
    return found


def test_a_node_with_gpus_offers_their_memory(view: View, gpu_node: str) -> None:
    assert status(view, gpu_node)["capacity"] == {"nvidia.com/memory": str(8 * CARD)}


def test_labels_that_change_are_followed(view: View, gpu_node: str) -> None:
    view.cluster.kubectl("label", "node", gpu_node, "nvidia.com/gpu.count=4", "--overwrite")
    view.wait(f"node/{gpu_node}", ALLOCATABLE, str(4 * CARD))
    view.wait(f"node/{gpu_node}", CAPACITY, str(4 * CARD))


@pytest.mark.parametrize("place", ["capacity", "allocatable"])
def test_a_value_that_a_kubelet_resets_is_corrected(view: View, gpu_node: str, place: str) -> None:
    reset = {"status": {place: {"nvidia.com/memory": "0"}}}
    view.patch(f"node/{gpu_node}", reset, "--subresource=status")
    view.wait(f"node/{gpu_node}", CAPACITY, str(8 * CARD))
    view.wait(f"node/{gpu_node}", ALLOCATABLE, str(8 * CARD))


def test_a_node_without_gpus_loses_the_resource_and_keeps_all_others(
    view: View, gpu_node: str
) -> None:
    other = {"status": {"capacity": {"example.com/fpga": "2"}}}
    view.patch(f"node/{gpu_node}", other, "--subresource=status")
    view.cluster.kubectl(
        "label", "node", gpu_node, "nvidia.com/gpu.count-", "nvidia.com/gpu.memory-"
    )
    view.until(lambda: "nvidia.com/memory" not in status(view, gpu_node)["capacity"])
    found = status(view, gpu_node)
    assert found["capacity"] == {"example.com/fpga": "2"}
    assert "nvidia.com/memory" not in found.get("allocatable", {})


def test_labels_that_can_not_be_read_change_nothing_and_are_told_once(
    view: View, gpu_node: str
) -> None:
    view.cluster.kubectl("label", "node", gpu_node, "nvidia.com/gpu.memory=80GiB", "--overwrite")
    view.until(lambda: complaints(view, gpu_node))
    assert status(view, gpu_node)["capacity"]["nvidia.com/memory"] == str(8 * CARD)
    view.cluster.kubectl("label", "node", gpu_node, "unrelated=1")
    view.cluster.kubectl("label", "node", gpu_node, "nvidia.com/gpu.memory=1", "--overwrite")
    view.wait(f"node/{gpu_node}", CAPACITY, str(8 * 2**20))
    (told,) = complaints(view, gpu_node)
    assert "'80GiB'" in told["message"]


def complaints(view: View, name: str) -> list[Raw]:
    return [
        event
        for event in view.everything("events")
        if event["reason"] == "GPULabelsUnreadable" and event["involvedObject"]["name"] == name
    ]


def test_a_pod_that_asks_for_gpu_memory_is_bound_while_there_is_room(
    controllers: Installation, view: View, namespace: str
) -> None:
    # One card of 16Gi, time-sliced three times: the cards suffice for three, the memory for two.
    with SimulatedGpuNode(
        controllers.cluster, "shared", cards=1, mib_per_card=16 * 1024, replicas=3
    ):
        view.wait("node/shared", ALLOCATABLE, str(16 * 2**30))
        for name in ("first", "second"):
            view.create(pod(name, namespace=namespace, gpus=1, memory="8Gi"))
            view.wait(f"pod/{name}", ".spec.nodeName", "shared", namespace)
        view.create(pod("third", namespace=namespace, gpus=1, memory="8Gi"))
        reason = '.status.conditions[?(@.type=="PodScheduled")].reason'
        view.wait("pod/third", reason, "Unschedulable", namespace)
        message = view.get("pod", "third", namespace)["status"]["conditions"][0]["message"]
        assert "Insufficient nvidia.com/memory" in message
        view.cluster.kubectl("delete", "pod", "first", "-n", namespace, "--force")
        view.wait("pod/third", ".spec.nodeName", "shared", namespace)
    view.cluster.kubectl("delete", "node", "shared")
