"""`kubectl gpumem top` and `why` through the API server's own proxy, and without the leader.

The API server takes no loopback address for a pod's. An address of the documentation's range is put
on the loopback interface, which takes root, and stands for the leader's pod.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart_rendering import of_kind, render
from devcluster.balancer import Balancer
from devcluster.installation import Installation
from devcluster.roleprocess import SOURCES, free_ports
from gpumem_operator import names
from intake.senders import NODE, POLICY, Cast
from report_builders import GIB, GPU, gpu, process, raw_report

pytestmark = pytest.mark.cluster
LEADER_ADDRESS = "198.51.100.7"


def gpumem(kubeconfig: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from gpumem_operator.cli.app import main; main()"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "COLUMNS": "200"}
    result = subprocess.run(
        [*command, *arguments, "--kubeconfig", str(kubeconfig)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result


def person(operator: Installation, path: Path, *, reader: bool) -> Path:
    """A kubeconfig of someone who may look at everything, and maybe ask the leader."""
    name = "reader" if reader else "viewer"
    create = operator.cluster.kubectl
    create("create", "serviceaccount", name, "-n", "default")
    subject = f"--serviceaccount=default:{name}"
    create("create", "clusterrolebinding", name, "--clusterrole=view", subject)
    if reader:
        role = f"--role={operator.release}-reader"
        create("create", "rolebinding", name, role, subject, "-n", operator.namespace)
    token = create("create", "token", name, "-n", "default").stdout.strip()
    operator.cluster.kubeconfig_for_token(token, path)
    return path


@pytest.fixture(scope="module")
def viewer(operator: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return person(operator, tmp_path_factory.mktemp("viewer") / "config", reader=False)


@pytest.fixture(scope="module")
def reader(operator: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Someone with the Role of readers, and a Service that leads to whoever leads."""
    added = subprocess.run(
        ["ip", "address", "add", f"{LEADER_ADDRESS}/32", "dev", "lo"],
        capture_output=True,
        text=True,
    )
    if added.returncode != 0:
        pytest.skip(f"an address for the leader's pod takes root: {added.stderr.strip()}")
    try:
        balancer = Balancer(free_ports(1)[0], operator.report_ports, host=LEADER_ADDRESS)
        _make_service(operator, balancer.server_address[1])
        yield person(operator, tmp_path_factory.mktemp("reader") / "config", reader=True)
        balancer.close()
    finally:
        subprocess.run(["ip", "address", "del", f"{LEADER_ADDRESS}/32", "dev", "lo"], check=True)


def _make_service(operator: Installation, port: int) -> None:
    """The chart's Service, and a pod that looks like the leader's."""
    manifests = render()
    [service] = [
        one
        for one in of_kind(manifests, "Service")
        if one["metadata"]["name"] == f"{operator.release}-report"
    ]
    labels = dict(service["spec"]["selector"])
    container = {"name": "controller", "image": "none"}
    ports = [{"name": "reports", "containerPort": port}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "leader", "namespace": operator.namespace, "labels": labels},
        "spec": {"nodeName": NODE, "containers": [{**container, "ports": ports}]},
    }
    items = {"apiVersion": "v1", "kind": "List", "items": [service, pod]}
    operator.cluster.kubectl("create", "-f", "-", input=json.dumps(items))
    address = {"podIP": LEADER_ADDRESS, "podIPs": [{"ip": LEADER_ADDRESS}]}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    status = json.dumps({"status": {"phase": "Running", **address, **ready}})
    where = ["-n", operator.namespace]
    operator.cluster.kubectl("patch", "pod", "leader", "--subresource=status", "-p", status, *where)
    what = f"endpoints/{operator.release}-report"
    until = "--for=jsonpath={.subsets[0].addresses[0].ip}=" + LEADER_ADDRESS
    operator.cluster.kubectl("wait", what, until, "--timeout=30s", *where)


def test_top_shows_the_largest_first_and_cards(cast: Cast, reader: Path) -> None:
    sizes = {"small": GIB, "large": 3 * GIB, "silent": None}
    for name, size in sizes.items():
        uid = cast.pod(name)
        if size is not None:
            assert cast.send(cast.token(name), raw_report(process(size, pod=uid))).status == 200
    shown = gpumem(reader, "top", "-n", cast.namespace).stdout.splitlines()
    assert shown[0].split() == ["POD", "USED", "LIMIT", "HELD", "BY", "NODE", "POLICY", "TENANT"]
    assert [line.split()[0] for line in shown[1:]] == ["large", "small", "silent"]
    assert shown[1].split() == [
        "large", "3Gi", "8Gi", "None:", "NotHeld", NODE, POLICY, cast.namespace,
    ]  # fmt: skip
    assert "unknown: NoReport" in shown[3]

    cast.send(
        cast.agent("agent-3"), raw_report(agent=True, gpus=[gpu(used=GIB)], start=cast.namespace)
    )
    everything = gpumem(reader, "top", "-A").stdout
    assert cast.namespace in everything
    assert GPU in everything

    found = json.loads(gpumem(reader, "top", "-n", cast.namespace, "-o", "json").stdout)
    assert {pod["namespace"] for pod in found["pods"]} == {cast.namespace}
    assert found["note"] is None
    gpumem(reader, "top", "--watch", "-o", "json", status=2)


def test_without_the_role_top_shows_what_everyone_may_see(cast: Cast, viewer: Path) -> None:
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    cast.until(lambda: cast.memory().get("usedBytes") == GIB)
    result = gpumem(viewer, "top", "-n", cast.namespace)
    assert "unknown: NotAsked" in result.stdout
    sums = [line.split() for line in result.stdout.splitlines() if POLICY in line]
    assert sums[-1] == [f"{cast.namespace}/{POLICY}", "8Gi", "1Gi", "0"]
    assert f"bind Role {cast.operator.release}-reader" in result.stderr


def test_why_explains_limit_charge_and_use(cast: Cast, reader: Path) -> None:
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    weaker = {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {"name": "weaker", "namespace": cast.namespace},
        "spec": {"priority": -5},
    }
    cast.create(weaker)
    lines = gpumem(reader, "why", "pod/train", "-n", cast.namespace).stdout.splitlines()
    assert lines[0] == f"pod {cast.namespace}/train (Running on {NODE})"
    assert f"  policy: {POLICY}, before weaker: priority 0 is above -5" in lines
    assert "  container main: limit 8Gi per GPU on 1 GPU (Policy)" in lines
    assert "  declared: 8Gi" in lines
    assert f"  used by main on {GPU}: 1Gi (said by Sidecar)" in lines
    assert any(line.startswith("  limit of main held by None: NotHeld (nothing") for line in lines)


def test_why_says_who_is_charged_to_whom_may_read_tenants(cast: Cast) -> None:
    cast.pod("train")
    shown = gpumem(cast.cluster.kubeconfig, "why", "pod/train", "-n", cast.namespace).stdout
    assert f"  charged: 8Gi to tenant {cast.namespace}" in shown


def test_why_tells_of_pods_that_were_refused(cast: Cast, viewer: Path) -> None:
    template = {
        "metadata": {"labels": {"app": "big"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"limits": {"nvidia.com/memory": "8Gi"}},
                }
            ]
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "big", "namespace": cast.namespace},
        "spec": {"selector": {"matchLabels": {"app": "big"}}, "template": template},
    }
    cast.create(deployment)
    ask = ("why", "deploy/big", "-n", cast.namespace)

    def asked() -> str | None:
        text = gpumem(viewer, *ask).stdout
        return text if "refused: " in text else None

    shown = cast.until(asked)
    assert shown.startswith(f"Deployment {cast.namespace}/big has no pod now.")
    assert "nvidia.com/memory" in shown


def test_why_says_what_can_be_said_of_what_is_not_there(cast: Cast, viewer: Path) -> None:
    shown = gpumem(viewer, "why", "pod/none", "-n", cast.namespace).stdout
    assert "A pod that was refused is stored nowhere" in shown
    result = gpumem(viewer, "why", "deployment/none", "-n", cast.namespace, status=2)
    assert "not found" in result.stderr
    assert "KIND/NAME" in gpumem(viewer, "why", "train", status=2).stderr


def test_why_says_why_a_pod_is_not_handled(cast: Cast, viewer: Path) -> None:
    cast.kubectl("delete", "gpumemorypolicy", POLICY)
    cast.pod("cpu", gpus=0)
    shown = gpumem(viewer, "why", "po/cpu", "-n", cast.namespace).stdout
    assert "It asks for no GPU" in shown
    cast.cluster.kubectl("label", "namespace", cast.namespace, "gpumemory.dev/ignore=true")
    cast.pod("left-out")
    shown = gpumem(cast.cluster.kubeconfig, "why", "pod/left-out", "-n", cast.namespace).stdout
    assert "not handled: namespace" in shown
    assert "gpumemory.dev/ignore=true" in shown


def test_without_a_cluster_there_is_one_sentence(tmp_path: Path) -> None:
    missing = gpumem(tmp_path / "none", "top", status=2)
    assert missing.stderr.startswith("error: no cluster can be asked")
    assert len(missing.stderr.splitlines()) == 1
