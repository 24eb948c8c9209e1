"""Somebody with every right in a namespace tries to get more than its tenant's quota.

The rights are those of the ClusterRole `admin` and of the platform's own role and every right over
the subresources of pods, all in this one namespace, held by a ServiceAccount with its real token.
What wider rights would not help with either is tried in
`chart/test_no_tenant_gets_round_its_limit.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.installation import NAMESPACE, RELEASE, Installation
from endtoend.quota import (
    GATE,
    create,
    gates_of,
    goes_on,
    put_tenant,
    status_of,
    until_charged,
    waits,
)
from endtoend.team import Team, pod

pytestmark = pytest.mark.cluster

SPACE = "ambitious"
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}-controller"
SUBRESOURCES = "pods/binding,pods/ephemeralcontainers,pods/resize,pods/status,bindings"
GPU = {"nvidia.com/gpu": 1}
SMALL = {"nvidia.com/gpu": 1, "nvidia.com/memory": "1Gi"}


class Admin:
    """kubectl with a token of a ServiceAccount of the namespace, and nothing else."""

    def __init__(self, team: Team, account: str, path: Path) -> None:
        self._team = team
        where = ["-n", team.name]
        team.kubectl("create", "serviceaccount", account)
        for role in ("clusterrole=admin", f"clusterrole={RELEASE}-platform", "role=everything"):
            binding = ["rolebinding", f"{account}-{role.split('=')[1]}", f"--{role}"]
            team.kubectl("create", *binding, f"--serviceaccount={team.name}:{account}")
        token = team.cluster.kubectl("create", "token", account, *where).stdout.strip()
        self._kubeconfig = team.cluster.kubeconfig_for_token(token, path)

    def tries(self, *arguments: str, input: object = None) -> str:
        """The complaint of the API server; empty where it did as it was told."""
        text = None if input is None else json.dumps(input)
        flags = [f"--kubeconfig={self._kubeconfig}", "-n", self._team.name]
        result = self._team.cluster.kubectl(*arguments, *flags, input=text, check=False)
        return "" if result.returncode == 0 else result.stderr


@pytest.fixture(scope="module")
def space(installation: Installation) -> Iterator[Team]:
    """A quota of 8Gi that one pod takes whole, and a pod that waits."""
    team = Team(installation.cluster, SPACE)
    put_tenant(team, limit="8Gi")
    create(team, "first")
    goes_on(team, "first")
    until_charged(team, 8)
    create(team, "second")
    waits(team, "second")
    team.kubectl("create", "role", "everything", "--verb=*", f"--resource={SUBRESOURCES}")
    yield team
    team.cluster.kubectl("delete", "gmt", SPACE)
    team.end()


@pytest.fixture(scope="module")
def admin(space: Team, tmp_path_factory: pytest.TempPathFactory) -> Admin:
    return Admin(space, "admin", tmp_path_factory.mktemp("admin") / "kubeconfig")


@pytest.fixture(scope="module")
def namesake(space: Team, tmp_path_factory: pytest.TempPathFactory) -> Admin:
    """An account that is called as the controller's, in the tenant's own namespace."""
    path = tmp_path_factory.mktemp("namesake") / "kubeconfig"
    return Admin(space, f"{RELEASE}-controller", path)


def patch(what: str, body: object, *flags: str, kind: str = "merge") -> list[str]:
    return ["patch", what, f"--type={kind}", "-p", json.dumps(body), *flags]


def raw(path: str) -> list[str]:
    return ["create", "--raw", f"/api/v1/namespaces/{SPACE}/{path}", "-f", "-"]


def forged(name: str, **env: str) -> dict[str, Any]:
    return pod(name, env=env)


def mirror() -> dict[str, Any]:
    marks = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
    return pod("mirror", annotations=marks, limits=SMALL, nodeName="somewhere")


SCRATCH = {"name": "debug", "image": "none"}
DEVICES = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "second"},
    "target": {"kind": "Node", "name": "somewhere"},
}
HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "zz-after-all-others"},
    "webhooks": [],
}
POLICY = {
    "apiVersion": "gpumemory.dev/v1alpha1",
    "kind": "GPUMemoryPolicy",
    "metadata": {"name": "mine"},
    "spec": {"limits": {"default": "2Gi"}},
}
OPEN = patch("pod/second", {"spec": {"schedulingGates": None}})
RESERVED = {"reservations": [], "chargedBytes": 0}
GUARD = "ValidatingAdmissionPolicy"
RIGHTS = "forbidden"

ATTEMPTS: dict[str, tuple[list[str], object, str]] = {
    # The pod that waits
    "opens its gate": (OPEN, None, "it keeps the pod until"),
    "opens it as the controller": ([*OPEN, f"--as={CONTROLLER}"], None, "cannot impersonate"),
    "binds it": (raw("pods/second/binding"), BINDING, "schedulingGates"),
    "declares less": (["annotate", "pod/second", "gpumemory.dev/limit=1Gi"], None, GUARD),
    "makes it a group": (["annotate", "pod/second", "gpumemory.dev/group-size=2"], None, GUARD),
    "makes its resources smaller": (
        patch("pod/second", [
            {"op": "replace", "path": "/spec/containers/0/resources/limits/nvidia.com~1memory",
             "value": "1Gi"}
        ], kind="json"), None, "spec: Forbidden: pod updates may not change fields"),
    "resizes it": (
        patch("pod/second", {"spec": {"containers": [{"name": "main", "resources": {
            "limits": {"nvidia.com/memory": "1Gi"}}}]}}, "--subresource=resize", kind="strategic"),
        None, "Forbidden: only cpu and memory resources are mutable"),
    # The pod that runs
    "says that it has ended": (
        patch("pod/first", {"status": {"phase": "Succeeded"}}, "--subresource=status"),
        None, "while it may run"),
    "takes it from the operator": (
        ["label", "pod/first", "gpumemory.dev/managed=false", "--overwrite"], None, GUARD),
    "takes GPUs by an ephemeral container": (
        patch("pod/first", {"spec": {"ephemeralContainers": [{**SCRATCH, "env": DEVICES}]}},
              "--subresource=ephemeralcontainers", kind="strategic"),
        None, "gives the container GPUs that it did not ask for"),
    "asks for one there": (
        patch("pod/first", {"spec": {"ephemeralContainers": [{**SCRATCH, "resources": {
            "limits": GPU}}]}}, "--subresource=ephemeralcontainers", kind="strategic"),
        None, "resources: Forbidden"),
    # A new pod
    "pretends that little was declared": (
        ["create", "-f", "-"],
        forged("little", GPUMEM_LIMIT_SOURCE="Annotation", GPUMEM_LIMIT_BYTES="1"),
        "the pod counts as 80Gi"),
    "takes GPUs by a variable": (
        ["create", "-f", "-"], pod("seeing", env={"NVIDIA_VISIBLE_DEVICES": "all"}),
        "gives the container GPUs that it did not ask for"),
    "names its node": (
        ["create", "-f", "-"], pod("placed", limits=SMALL, nodeName="somewhere"),
        "0 of 8Gi are left"),
    "pretends to be a container of ours": (
        ["create", "-f", "-"],
        pod("ours", initContainers=[{"name": "gpumem-sidecar", "image": "none",
                                     "resources": {"limits": GPU}}], limits=SMALL),
        "is refused"),
    # Policies and the tenant
    "writes a policy": (["create", "-f", "-"], POLICY, "the verb manage"),
    "raises its quota": (patch(f"gmt/{SPACE}", {"spec": {"quota": {"limit": "99Gi"}}}), None,
                         RIGHTS),
    "takes reservations out of the status": (
        patch(f"gmt/{SPACE}", {"status": RESERVED}, "--subresource=status"), None, RIGHTS),
    "deletes the tenant": (["delete", "gmt", SPACE], None, RIGHTS),
    # The namespace
    "has it ignored": (["label", "namespace", SPACE, "gpumemory.dev/ignore=true"], None, RIGHTS),
    "takes a second one": (["create", "namespace", "ambitious-2"], None, RIGHTS),
    "works where nobody looks": (
        ["create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods", "-f", "-"], pod("hidden"),
        RIGHTS),
    # The operator and the API server
    "gives itself the right to manage": (
        ["create", "clusterrolebinding", "mine", f"--clusterrole={RELEASE}-platform",
         f"--serviceaccount={SPACE}:admin"], None, RIGHTS),
    "gives itself a status to write": (
        ["create", "clusterrole", "writer", "--verb=patch", "--resource=gpumemorytenants/status"],
        None, RIGHTS),
    "takes a token of the operator": (
        ["create", "--raw",
         f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}-controller/token", "-f", "-"],
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}, RIGHTS),
    "reads the key of the seals": (
        ["get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/secrets/{RELEASE}-seal"], None, RIGHTS),
    "undoes admission by a webhook": (["create", "-f", "-"], HOOK, RIGHTS),
}  # fmt: skip


@pytest.mark.parametrize(("attempt", "body", "complaint"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_it(space: Team, admin: Admin, attempt: list[str], body: object, complaint: str) -> None:
    answer = admin.tries(*attempt, input=body)

    assert answer, "it succeeded"
    assert complaint in answer
    assert gates_of(space, "second") == [GATE]


def test_an_account_of_the_same_name_is_another_one(space: Team, namesake: Admin) -> None:
    assert "it keeps the pod until" in namesake.tries(*OPEN)
    assert gates_of(space, "second") == [GATE]


def test_the_picture_of_a_static_pod_can_not_become_a_pod(space: Team, admin: Admin) -> None:
    """It has no gate, because it runs already; kubelets run no such pod from the API server."""
    assert admin.tries("create", "-f", "-", input=mirror()) == ""
    answer = admin.tries("annotate", "pod/mirror", "kubernetes.io/config.mirror-")
    space.kubectl("delete", "pod", "mirror", "--force", "--grace-period=0", "--ignore-not-found")
    assert "config.mirror" in answer


def test_a_gate_of_our_name_on_a_pod_without_gpus_is_its_authors(space: Team, admin: Admin) -> None:
    """It keeps nothing back, and the operator opens gates of GPU pods alone."""
    body = pod("plain", limits={"cpu": "1"}, schedulingGates=[{"name": GATE}])
    assert admin.tries("create", "-f", "-", input=body) == ""
    assert gates_of(space, "plain") == [GATE]
    assert admin.tries(*patch("pod/plain", {"spec": {"schedulingGates": None}})) == ""
    assert gates_of(space, "plain") == []
    space.kubectl("delete", "pod", "plain", "--force", "--grace-period=0")


def test_after_all_that_nothing_has_changed(space: Team) -> None:
    until_charged(space, 8)
    assert space.get("gmt", SPACE)["spec"]["quota"]["limit"] == "8Gi"
    assert [row["name"] for row in status_of(space)["queue"]] == ["second"]
