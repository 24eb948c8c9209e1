"""matchConditions say "GPU pod" exactly as the processes do, and never fail themselves.

Nobody answers behind these webhooks, so a pod that reaches one is refused with its name.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_operator.api.pods import is_gpu_pod
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster

Container = dict[str, Any]


def container(name: str = "main", *, env: list[Any] | None = None, **limits: str) -> Container:
    result: Container = {"name": name, "image": "none"}
    if limits:
        result["resources"] = {"limits": limits}
    if env is not None:
        result["env"] = env
    return result


def limited(resource: str, amount: str = "1", **other: str) -> Container:
    return container() | {"resources": {"limits": {resource: amount, **other}}}


def visible(value: str | None) -> Container:
    entry = {"name": names.VISIBLE_DEVICES_ENV} | ({} if value is None else {"value": value})
    return container(env=[{"name": "FIRST", "value": "1"}, entry])


def pod(*containers: Container, init: list[Container] | None = None, **spec: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "tried-"},
        "spec": {"containers": list(containers), **spec},
    }
    if init is not None:
        result["spec"]["initContainers"] = init
    return result


BY_FIELD = {
    "name": names.VISIBLE_DEVICES_ENV,
    "valueFrom": {"configMapKeyRef": {"name": "devices", "key": "all"}},
}
GPU = {
    "a whole GPU": pod(limited("nvidia.com/gpu")),
    "no GPU, but said so": pod(limited("nvidia.com/gpu", "0")),
    "a shared GPU": pod(limited("nvidia.com/gpu.shared")),
    "a MIG slice": pod(limited("nvidia.com/mig-1g.10gb")),
    "memory without a GPU": pod(limited("nvidia.com/memory", "8Gi")),
    "the second of two containers": pod(container("web"), limited("nvidia.com/gpu")),
    "an init container": pod(container("web"), init=[limited("nvidia.com/gpu")]),
    "a native sidecar": pod(
        container("web"), init=[limited("nvidia.com/gpu") | {"restartPolicy": "Always"}]
    ),
    "a container under a name of ours": pod(
        container("web"), init=[limited("nvidia.com/gpu") | {"name": names.SIDECAR_CONTAINER}]
    ),
    "all devices by a variable": pod(visible("all")),
    "one device by a variable": pod(visible("0")),
    "an empty variable": pod(visible("")),
    "a variable without a value": pod(visible(None)),
    "a variable from elsewhere": pod(container(env=[BY_FIELD])),
    "devices in an init container": pod(container("web"), init=[visible("all")]),
    "a GPU and a claim": pod(
        limited("nvidia.com/gpu"), resourceClaims=[{"name": "c", "resourceClaimName": "c"}]
    ),
}
OTHER = {
    "nothing at all": pod(container()),
    "a mark of ours on a pod without GPUs": pod(container())
    | {"metadata": {"generateName": "tried-", "labels": {names.RESERVE_LABEL: "true"}}},
    "processors and memory": pod(container(cpu="1", memory="1Gi")),
    "requests alone": pod(container() | {"resources": {"requests": {"cpu": "1"}}}),
    "an empty resources": pod(container() | {"resources": {}}),
    "another vendor's GPU": pod(limited("amd.com/gpu")),
    "a resource that only begins alike": pod(limited("nvidia.com/gpu-other")),
    "void devices": pod(visible("void")),
    "none of the devices": pod(visible("none")),
    "an empty list of variables": pod(container(env=[])),
    "another variable": pod(
        container(env=[{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}])
    ),
    "a plain init container": pod(container("web"), init=[container("first")]),
    "an empty list of init containers": pod(container(), init=[]),
}
CLAIM = pod(container(), resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
CLASS = "deviceclass.resource.kubernetes.io/"
DEVICES = {
    "a claim": CLAIM,
    "the resource of a class for GPUs": pod(limited(f"{CLASS}gpu.nvidia.com")),
    "the same in an init container": pod(
        container(), init=[limited(f"{CLASS}mig.nvidia.com") | {"name": "first"}]
    ),
    "the same without a limit": pod(
        container() | {"resources": {"requests": {f"{CLASS}gpu.nvidia.com": "1"}}}
    ),
    "a resource that a class may stand behind": pod(limited("example.com/card")),
}
NO_DEVICES = {
    "the resource of another class": pod(limited(f"{CLASS}nic.example.com")),
    "processors and memory": OTHER["processors and memory"],
    "large pages": pod(limited("hugepages-2Mi", "2Mi", memory="1Gi")),
    "nothing at all": OTHER["nothing at all"],
}


def called(installation: Installation, raw: dict[str, Any], *, namespace: str = "default") -> str:
    """The hook that the API server called about the pod; empty where it called none."""
    where = ["create", "--dry-run=server", "-n", namespace, "-f", "-"]
    result = installation.cluster.kubectl(*where, input=json.dumps(raw), check=False)
    found = re.search(r'failed calling webhook "([a-z-]+)\.gpumemory\.dev"', result.stderr)
    assert found or result.returncode == 0, result.stderr
    return found[1] if found else ""


def wait_until_called(
    installation: Installation, raw: dict[str, Any], hook: str, *, namespace: str = "default"
) -> None:
    """After a change: the API server sees it a moment later than its writer, and tells nobody."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := called(installation, raw, namespace=namespace)) != hook:
        assert time.monotonic() < deadline, f"{found!r} is called and not {hook!r}"


@pytest.mark.parametrize("what", GPU)
def test_a_gpu_pod_is_one_to_both(bare: Installation, what: str) -> None:
    assert is_gpu_pod(GPU[what], names.MEMORY_RESOURCE)
    assert called(bare, GPU[what]) == names.MUTATE_POD


@pytest.mark.parametrize("what", OTHER)
def test_another_pod_is_none_to_either(bare: Installation, what: str) -> None:
    assert not is_gpu_pod(OTHER[what], names.MEMORY_RESOURCE)
    assert called(bare, OTHER[what]) == ""


def test_a_pod_of_very_many_containers_is_still_judged(bare: Installation) -> None:
    many = [
        container(f"c{index}", cpu="1m", memory="1Mi", env=_variables()) for index in range(250)
    ]

    assert called(bare, pod(*many)) == ""
    assert called(bare, pod(*many, limited("nvidia.com/gpu"))) == names.MUTATE_POD


def _variables() -> list[Any]:
    return [{"name": f"V{index}", "value": "1"} for index in range(40)]


@pytest.fixture
def refusing_claims(bare: Installation) -> Iterator[None]:
    bare.upgrade({"resourceClaims": "Refuse"})
    yield
    bare.upgrade({"resourceClaims": "Warn"})


@pytest.mark.usefixtures("refusing_claims")
def test_devices_by_class_have_an_entry_of_their_own(bare: Installation) -> None:
    wait_until_called(bare, CLAIM, names.CHECK_CLAIMS)

    assert {what: called(bare, raw) for what, raw in DEVICES.items()} == dict.fromkeys(
        DEVICES, names.CHECK_CLAIMS
    )
    assert {what: called(bare, raw) for what, raw in NO_DEVICES.items()} == dict.fromkeys(
        NO_DEVICES, ""
    )


def test_no_gpu_resource_can_be_asked_for_without_a_limit(bare: Installation) -> None:
    """So it is enough that the expression for GPU pods looks at limits."""
    for resource in ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", names.MEMORY_RESOURCE):
        raw = pod(container() | {"resources": {"requests": {resource: "1"}}})
        create = ["create", "--dry-run=server", "-f", "-"]
        result = bare.cluster.kubectl(*create, input=json.dumps(raw), check=False)
        assert "Limit must be set for non overcommitable resources" in result.stderr


def test_with_warnings_only_claims_do_not_wait_for_the_webhook(bare: Installation) -> None:
    wait_until_called(bare, CLAIM, "")


def test_ignored_namespaces_are_left_alone(bare: Installation) -> None:
    kubectl = bare.cluster.kubectl
    kubectl("create", "namespace", "ignored")
    kubectl("create", "serviceaccount", "default", "-n", "ignored", check=False)
    gpu = GPU["a whole GPU"]
    wait_until_called(bare, gpu, names.MUTATE_POD, namespace="ignored")

    kubectl("label", "namespace", "ignored", f"{names.IGNORE_LABEL}=true")

    wait_until_called(bare, gpu, "", namespace="ignored")
    assert called(bare, gpu, namespace="kube-system") == ""
    assert called(bare, gpu, namespace=bare.namespace) == ""


@pytest.mark.parametrize(
    ("added", "hook"),
    [
        pytest.param(visible("all"), names.MUTATE_EPHEMERAL, id="that sees devices"),
        pytest.param(container("plain"), "", id="that sees none"),
    ],
)
def test_an_ephemeral_container(bare: Installation, added: Container, hook: str) -> None:
    kubectl = bare.cluster.kubectl
    stored = json.loads(
        kubectl("create", "-f", "-", "-o", "json", input=json.dumps(OTHER["nothing at all"])).stdout
    )
    name = stored["metadata"]["name"]
    del stored["metadata"]["resourceVersion"]  # The scheduler writes its own at the same time.
    stored["spec"]["ephemeralContainers"] = [added | {"name": "debugger"}]
    path = f"/api/v1/namespaces/default/pods/{name}/ephemeralcontainers"

    result = kubectl("replace", "--raw", path, "-f", "-", input=json.dumps(stored), check=False)

    assert (hook in result.stderr) if hook else result.returncode == 0, result.stderr
    kubectl("delete", "pod", name, "--now")


def test_another_memory_resource_is_the_one_that_counts(bare: Installation) -> None:
    own = pod(limited("example.com/vram", "8Gi"))
    assert called(bare, own) == ""

    bare.upgrade({"memoryResource": "example.com/vram"})
    try:
        wait_until_called(bare, own, names.MUTATE_POD)
        assert called(bare, GPU["memory without a GPU"]) == ""
    finally:
        bare.upgrade({"memoryResource": names.MEMORY_RESOURCE})
