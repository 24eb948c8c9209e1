"""What a plan writes is what the API server stores: otherwise every reinvocation would change it.

The pods are created as dry runs, which go through defaulting, the ServiceAccount plugin and
validation like every other.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from builders import (
    CERTIFICATE,
    Raw,
    admitted,
    container,
    cpu_container,
    env,
    native_sidecar,
    pod,
    policy,
    review,
    values,
)
from devcluster import Cluster
from gpumem_operator import names
from gpumem_operator.api.quantity import canonical
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.values import Values
from patience import WAIT

pytestmark = pytest.mark.cluster

Create = Callable[[Raw], Raw]


def namespace(cluster: Cluster, name: str, **labels: str) -> None:
    """A new namespace, ready for pods: its ServiceAccount is there."""
    metadata = {"name": name, "labels": labels}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))
    cluster.kubectl("-n", name, "wait", "serviceaccount/default", "--for=create", WAIT)


def dry_run(cluster: Cluster, raw: Raw, space: str) -> Raw:
    """The pod as the server would store it."""
    raw = {**raw, "metadata": {**raw["metadata"], "namespace": space}}
    answer = cluster.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(raw)
    )
    stored: Raw = json.loads(answer.stdout)
    return stored


@pytest.fixture(scope="module")
def create(cluster: Cluster) -> Create:
    namespace(cluster, "core-admission")
    return lambda raw: dry_run(cluster, raw, "core-admission")


FULL = policy(
    limits={"default": "8Gi"},
    frameworks={
        "pytorch": {"allocatorConfig": {"max_split_size_mb": "128"}},
        "tensorflow": {"mode": "Growth"},
    },
    datasetCache={"mountPath": "/mnt/ramdisk", "sizeLimit": "1G"},
)
ODD_CHART = values(
    sidecar={
        "resources": {"cpu": "0.05", "memory": "0.125Gi"},
        "shimResources": {"cpu": "1000m", "memory": "134217728"},
    },
    report={"url": "https://reports.example:8443", "ca": CERTIFICATE},
    runVolumeSize="20M",
    scheduling={"fillResource": "Enabled"},
)


@pytest.mark.parametrize("chart", [Values(), ODD_CHART], ids=["default values", "odd values"])
@pytest.mark.parametrize(
    "record",
    [FULL, policy(mode="Observe"), policy(monitoring={"mode": "NodeAgent"})],
    ids=["everything", "Observe", "NodeAgent"],
)
@pytest.mark.parametrize(
    "raw",
    [
        pod(container(gpus=2)),
        pod(
            container(env=env(PYTHONPATH="/app", CUPY_GPU_MEMORY_LIMIT="0"), memory="8Gi"),
            cpu_container("web"),
            init=[native_sidecar("side"), cpu_container("step")],
            restartPolicy="Never",
        ),
        pod(hostNetwork=True),
        pod(hostPID=True),
    ],
    ids=["a plain pod", "a pod with steps", "host network", "host PIDs"],
)
def test_a_pod_of_ours_comes_back_as_it_was_written(
    create: Create, raw: Raw, record: PolicyRecord, chart: Values
) -> None:
    stored = create(admitted(raw, record, values=chart))
    assert review(stored, record, values=chart).operations == ()


@pytest.mark.parametrize("user", [65532, None])
def test_a_pod_of_ours_is_taken_in_a_restricted_namespace(
    cluster: Cluster, user: int | None
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = f"core-restricted-{user or 'chosen'}"
    namespace(cluster, space, **labels)
    own = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    raw = admitted(
        pod(container(securityContext=own), serviceAccountName="default"),
        FULL,
        values=values(sidecar={"runAsUser": user}),
    )
    stored = dry_run(cluster, raw, space)
    assert stored["spec"]["initContainers"] == raw["spec"]["initContainers"]


def test_the_server_adds_no_token_of_the_pod_to_our_containers(create: Create) -> None:
    stored = create(admitted(pod(), FULL))
    for one in stored["spec"]["initContainers"]:
        assert one["name"] in names.OUR_CONTAINERS
        assert not any(m["name"].startswith("kube-api-access") for m in one["volumeMounts"])
    assert any(
        mount["name"].startswith("kube-api-access")
        for mount in stored["spec"]["containers"][0]["volumeMounts"]
    )


QUANTITIES = [
    *("0.05", "1000m", "0.5", "1.5", "100", "1000", "1500", "1e3", "12e6", "1E", "0", "0.0"),
    *("1Gi", "1024Mi", "0.5Gi", "1536Mi", "1000Ki", "1024", "1073741824", "1.5Gi", "0.1Ki", "20M"),
    *("1000000u", "5n", "1.000", "0.0000001"),
]


def test_quantities_are_written_as_the_server_writes_them(create: Create) -> None:
    raw = pod(
        cpu_container(),
        volumes=[
            {"name": f"v{index}", "emptyDir": {"sizeLimit": text}}
            for index, text in enumerate(QUANTITIES)
        ],
    )
    stored = create(raw)
    found = {
        text: volume["emptyDir"]["sizeLimit"]
        for text, volume in zip(QUANTITIES, stored["spec"]["volumes"], strict=False)
    }
    assert found == {text: canonical(text) for text in QUANTITIES}
