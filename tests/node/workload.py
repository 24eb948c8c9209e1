"""GPU workloads that really run, with the sidecar's image, which has Python, as their own."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
import yaml

from devcluster import Cluster
from devcluster.installation import CHART, NAMESPACE
from devcluster.node import Node
from devcluster.node.containerd import PAUSE_IMAGE
from endtoend.team import Team
from patience import WAIT

nvml_everywhere = pytest.mark.parametrize(
    "operator_in_pods", [True], indirect=True, ids=["NVML everywhere"]
)
nvml_in_gpu_containers = pytest.mark.parametrize(
    "operator_in_pods", [False], indirect=True, ids=["NVML in GPU containers"]
)

CARDS = 6
"""More than one test needs: a kubelet frees a card a moment after its pod is gone."""
REPLICAS = 8
"""Of the last card, where a device plugin hands them out."""
MIB_PER_CARD = 81920
MIB = 2**20
COMPLAINT = re.compile(
    r"\berror\b|traceback|(?<!,)\b40[13]\b|forbidden|unauthorized", re.IGNORECASE
)
"""A number behind a comma is the milliseconds of the time of day."""

FAKE_TORCH = "__version__ = '2.9.1'\n"
"""What the shim meets on the way to the real one: it looks at the import and the version."""


def sidecar_image() -> str:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    image: str = values["sidecar"]["image"]
    return image


def restricted_pod_spec(
    program: str, *, limits: dict[str, Any] | None = None, env: dict[str, str] | None = None
) -> dict[str, Any]:
    """One container `main` with one GPU; it runs a Python program, and may import a torch."""
    container = {
        "name": "main",
        "image": sidecar_image(),
        "command": ["python", "-c", program],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": {"limits": {"nvidia.com/gpu": 1, **(limits or {})}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "library", "mountPath": "/library"}],
    }
    return {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "library", "configMap": {"name": "library"}}],
        "containers": [container],
    }


def holding(mib: int, *, managed_mib: int = 0) -> str:
    """A program that holds memory on the card that it was given, or on the first one."""
    sizes = ["--mib", str(mib), "--managed-mib", str(managed_mib)]
    card = "os.environ.get('NVIDIA_VISIBLE_DEVICES', '0')"
    command = f"['simulated-alloc', '--gpu', {card}, *{sizes!r}]"
    return f"import os; os.execvp('simulated-alloc', {command})"


def agents_sample(node: Node) -> Any:
    """What the agent sees now, by another run of its program in its own pod."""
    where = ["daemonset/gpu-memory-operator-agent", "-n", NAMESPACE, "--"]
    sample = ["python", "-m", "gpumem_sidecar", "--agent", "--once"]
    return json.loads(node.cluster.kubectl("exec", *where, *sample).stdout)


def processes_of(pod: dict[str, Any], report: Any) -> list[Any]:
    return [one for one in report["processes"] if one["podUid"] == pod["metadata"]["uid"]]


def create_library(team: Team) -> None:
    """A folder with a module `torch`, for the pods' own PYTHONPATH."""
    data = {"torch.py": FAKE_TORCH}
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "library"}, "data": data}
    answer = team.kubectl("apply", "-f", "-", input=json.dumps(raw))
    assert "created" in answer or "unchanged" in answer, answer


def run_pod(team: Team, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Create a pod and wait until it is ready; as it is stored then."""
    create_library(team)
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    assert "created" in (answer := team.create(raw)), answer
    answer = team.kubectl("wait", f"pod/{name}", "--for=condition=Ready", WAIT)
    assert "condition met" in answer, answer + describe(team, f"pod/{name}")
    return team.get("pod", name)


def run_pause(node: Node, name: str) -> None:
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    node.cluster.kubectl("create", "-f", "-", input=json.dumps(pod))
    node.cluster.kubectl("wait", f"pod/{name}", "--for=condition=Ready", WAIT)


def describe(team: Team, what: str) -> str:
    return team.kubectl("describe", what)


def execute(team: Team, pod: str, *command: str, container: str = "main") -> str:
    """What a command prints in a container of a pod that runs."""
    result = execution(team, pod, *command, container=container)
    assert result.returncode == 0, result.stderr
    return result.stdout


def execution(
    team: Team, pod: str, *command: str, container: str = "main"
) -> subprocess.CompletedProcess[str]:
    where = ["exec", pod, "-n", team.name, "-c", container]
    return team.cluster.kubectl(*where, "--", *command, check=False)


def container_states(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """State and readiness of every container, init containers included, by name."""
    status = pod["status"]
    both = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return {container["name"]: container for container in both}


def complaints_of_the_roles(cluster: Cluster) -> list[str]:
    """Lines in the logs of webhook and controller that should not be there."""
    logs = logs_of(cluster, NAMESPACE, "app.kubernetes.io/component in (webhook, controller)")
    assert logs, "nothing was logged, so nothing was looked at"
    return [line for line in logs.splitlines() if COMPLAINT.search(line)]


def wait_until_measured(team: Team) -> None:
    """Until the policy's status tells of every running pod what it holds."""
    team.until("get", "gmp", "training", "-o", "yaml", until="reason: Measured\n")


def logs_of(cluster: Cluster, namespace: str, selector: str) -> str:
    """Of all containers of all pods that match."""
    pods = json.loads(
        cluster.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json").stdout
    )["items"]
    assert pods, f"no pod in {namespace} matches {selector}"
    return "".join(
        cluster.kubectl("logs", pod["metadata"]["name"], "-n", namespace, "--all-containers").stdout
        for pod in pods
    )
