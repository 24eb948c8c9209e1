"""Images made from CUDA images see every GPU of a node, unless somebody says `void`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.installation import Installation
from endtoend.team import Team, environment, pod
from patience import eventually
from webhook.in_a_cluster import reviews

pytestmark = pytest.mark.cluster

DEVICES = "NVIDIA_VISIBLE_DEVICES"
ISOLATE = "gpumemory.dev/isolate"
REFERENCE = {"name": DEVICES, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


@pytest.fixture(scope="module", params=["Auto", "Webhook"])
def isolating(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The API server by itself, and the webhook for API servers that can not."""
    installation.upgrade({"isolation": {"by": request.param}})
    kubectl = installation.cluster.kubectl
    native = kubectl("get", "mutatingadmissionpolicies", "-o", "name").stdout
    hooks = kubectl("get", "mutatingwebhookconfigurations", "-o", "json").stdout
    by_itself = request.param == "Auto"
    assert ("gpu-memory-operator-isolation" in native) is by_itself
    assert ("isolate-pod.gpumemory.dev" in hooks) is not by_itself
    if not by_itself:
        until_it_is_asked(installation)
    yield installation
    installation.upgrade({"isolation": {"by": "Auto"}})


def until_it_is_asked(installation: Installation) -> None:
    """The webhook, about a CPU pod: the policy of before may be in force for a second longer, so
    the pod does not tell which of the two was at work."""
    team = Team(installation.cluster, "asks-the-webhook")
    team.cluster.kubectl("label", "namespace", team.name, f"{ISOLATE}=true")

    def is_asked() -> bool:
        before = reviews(installation)
        team.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(cpu_pod("probe")))
        return reviews(installation) > before

    eventually(is_asked)
    team.end()


@pytest.fixture
def isolated(isolating: Installation, team: Team) -> Team:
    assert isolating.cluster is team.cluster
    team.cluster.kubectl("label", "namespace", team.name, f"{ISOLATE}=true")
    # A policy is in force about a second after it was made, and a CA later than its webhook.
    team.until(
        *("create", "--dry-run=server", "-o", "json", "-f", "-"),
        input=json.dumps(cpu_pod("probe")),
        until=DEVICES,
    )
    return team


def cpu_pod(name: str, *env: dict[str, Any], **container: Any) -> dict[str, Any]:
    raw = pod(name)
    main = raw["spec"]["containers"][0]
    del main["resources"]
    main.update({"env": list(env)} if env else {}, **container)
    return raw


def env_of(stored: dict[str, Any], kind: str = "containers", index: int = 0) -> Any:
    return stored["spec"][kind][index].get("env", [])


VOID = {"name": DEVICES, "value": "void"}
MINE = {"name": "MINE", "value": f"$({DEVICES})"}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param([], [VOID], id="nothing"),
        pytest.param([MINE], [VOID, MINE], id="other variables"),
        pytest.param([{"name": DEVICES, "value": "all"}, MINE], [VOID, MINE], id="all"),
        pytest.param([{"name": DEVICES, "value": ""}], [VOID], id="an empty value"),
        pytest.param([REFERENCE, MINE], [VOID, MINE], id="a reference"),
        pytest.param([MINE, VOID], [MINE, VOID], id="void already"),
        pytest.param([{"name": DEVICES, "value": "none"}], [{"name": DEVICES, "value": "none"}],
                     id="none already"),
        pytest.param([VOID, {"name": DEVICES, "value": "all"}], [VOID], id="void, and then all"),
    ],
)  # fmt: skip
def test_a_container_that_asks_for_no_gpu_sees_none(
    isolated: Team, env: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    isolated.create(cpu_pod("web", *env))

    assert env_of(isolated.get("pod", "web")) == expected


def test_neither_by_env_from_nor_in_init_containers_nor_with_a_request_for_zero(
    isolated: Team,
) -> None:
    raw = cpu_pod("web", envFrom=[{"configMapRef": {"name": "devices", "optional": True}}])
    zero = {"limits": {"nvidia.com/gpu": "0"}}
    raw["spec"]["containers"].append({"name": "zero", "image": "none", "resources": zero})
    raw["spec"]["initContainers"] = [
        {"name": "first", "image": "none"},
        {"name": "second", "image": "none", "env": [VOID]},
        {"name": "beside", "image": "none", "restartPolicy": "Always"},
    ]
    isolated.create(raw)

    stored = isolated.get("pod", "web")

    assert [env_of(stored, index=index) for index in (0, 1)] == [[VOID], [VOID]]
    assert [env_of(stored, "initContainers", index) for index in (0, 1, 2)] == [[VOID]] * 3


def test_containers_on_gpus_keep_theirs_and_those_beside_them_see_none(isolated: Team) -> None:
    isolated.policy(limits={"default": "8Gi"})
    raw = pod("train")
    raw["spec"]["containers"].append({"name": "logs", "image": "none", "env": [MINE]})
    slice_of_a_card = {"limits": {"nvidia.com/mig-1g.10gb": "1"}}
    raw["spec"]["containers"].append(
        {"name": "slice", "image": "none", "resources": slice_of_a_card}
    )
    isolated.create(raw)

    stored = isolated.get("pod", "train")

    assert DEVICES not in environment(stored)
    assert environment(stored)["GPUMEM_LIMIT_BYTES"] == str(8 * 2**30)
    assert env_of(stored, index=1) == [VOID, MINE]
    assert DEVICES not in {entry["name"] for entry in env_of(stored, index=2)}
    for ours in stored["spec"]["initContainers"]:
        assert [entry for entry in ours["env"] if entry["name"] == DEVICES] == [VOID]


@pytest.fixture
def toolkit(isolating: Installation) -> Iterator[None]:
    """The platform gives NVML to the sidecar."""
    isolating.upgrade({"sidecar": {"toolkitNVML": "Enabled"}})
    yield
    isolating.upgrade({"sidecar": {"toolkitNVML": "Disabled"}})


@pytest.mark.usefixtures("toolkit")
def test_the_sidecar_keeps_what_the_platform_gives_it(isolated: Team) -> None:
    isolated.policy(limits={"default": "8Gi"})
    raw = pod("train")
    raw["spec"]["containers"].append({"name": "logs", "image": "none"})
    isolated.create(raw)

    spec = isolated.get("pod", "train")["spec"]

    seen = {
        container["name"]: entry["value"]
        for container in (*spec["initContainers"], *spec["containers"])
        for entry in container.get("env", [])
        if entry["name"] == DEVICES
    }
    assert seen == {"gpumem-shim": "void", "gpumem-sidecar": "all", "logs": "void"}


def test_an_ephemeral_container_sees_none_and_those_before_it_stay(isolated: Team) -> None:
    kubectl = isolated.cluster.kubectl
    kubectl("label", "namespace", isolated.name, f"{ISOLATE}-")
    isolated.create(cpu_pod("web"))
    path = f"/api/v1/namespaces/{isolated.name}/pods/web/ephemeralcontainers"

    def add(name: str) -> None:
        stored = isolated.get("pod", "web")
        debug = {"name": name, "image": "none", "env": [{"name": DEVICES, "value": "all"}]}
        stored["spec"].setdefault("ephemeralContainers", []).append(debug)
        kubectl("replace", "--raw", path, "-f", "-", input=json.dumps(stored))

    add("early")
    kubectl("label", "namespace", isolated.name, f"{ISOLATE}=true")
    add("late")

    stored = isolated.get("pod", "web")
    assert env_of(stored, "ephemeralContainers", 0) == [{"name": DEVICES, "value": "all"}]
    assert env_of(stored, "ephemeralContainers", 1) == [VOID]


def test_other_namespaces_are_left_alone(isolating: Installation, team: Team) -> None:
    assert isolating.cluster is team.cluster
    team.create(cpu_pod("web"))

    assert env_of(team.get("pod", "web")) == []
