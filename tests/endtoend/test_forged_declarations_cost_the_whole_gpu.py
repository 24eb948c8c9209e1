"""A pod that was stored where admission did not look pretends that admission declared little."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from devcluster.installation import Installation
from endtoend.team import Team, environment, pod

pytestmark = pytest.mark.cluster

GIB = 2**30
FORGED = {"GPUMEM_LIMIT_SOURCE": "Annotation", "GPUMEM_LIMIT_BYTES": str(GIB)}
CHARGED = ["-o", "jsonpath={.status.chargedBytes}"]
SEAL = ["secret", "gpu-memory-operator-seal", "-n", "gpumem-system"]


@pytest.fixture
def tenant(team: Team) -> Iterator[str]:
    """The name of a tenant that is not there yet."""
    yield team.name
    team.cluster.kubectl("delete", "gmt", team.name, "--ignore-not-found")


def becomes_a_tenant(team: Team) -> None:
    team.cluster.kubectl("label", "namespace", team.name, f"team={team.name}")
    team.create(
        {
            "apiVersion": "gpumemory.dev/v1alpha1",
            "kind": "GPUMemoryTenant",
            "metadata": {"name": team.name},
            "spec": {
                "namespaceSelector": {"matchLabels": {"team": team.name}},
                "quota": {"limit": "640Gi", "wholeGPU": "80Gi", "onExceeded": "Warn"},
            },
        }
    )


def becomes_unmanaged(team: Team, pod: str) -> None:
    """Labels follow on their own time: the charge does not wait for them."""
    path = r"jsonpath={.metadata.labels.gpumemory\.dev/managed}"
    team.until("get", "pod", pod, "-o", path, until="false")


def test_in_a_namespace_that_belonged_to_nobody(team: Team, tenant: str) -> None:
    team.create(pod("early", env=FORGED))
    assert environment(team.get("pod", "early")).items() >= FORGED.items()  # nobody looked

    becomes_a_tenant(team)

    team.until("get", "gmt", tenant, *CHARGED, until=str(80 * GIB))
    becomes_unmanaged(team, "early")


def test_in_a_namespace_that_was_ignored(team: Team, tenant: str) -> None:
    ignored = ["label", "namespace", team.name]
    team.cluster.kubectl(*ignored, "gpumemory.dev/ignore=true")
    team.create(pod("early", env=FORGED))
    labelled = pod("labelled", env=FORGED)
    labelled["metadata"]["labels"] = {"gpumemory.dev/managed": "true"}
    team.create(labelled)
    team.cluster.kubectl(*ignored, "gpumemory.dev/ignore-")

    becomes_a_tenant(team)

    team.until("get", "gmt", tenant, *CHARGED, until=str(160 * GIB))
    becomes_unmanaged(team, "early")
    becomes_unmanaged(team, "labelled")


def test_with_the_seal_of_a_pod_elsewhere(
    team: Team, tenant: str, installation: Installation
) -> None:
    other = Team(installation.cluster, f"{team.name}-other")
    other.policy(limits={"default": "2Gi"})
    other.create(pod())
    copied = environment(other.get("pod", "train"))
    other.end()
    team.create(pod("copied", env={key: copied[key] for key in (*FORGED, "GPUMEM_SEAL")}))

    becomes_a_tenant(team)

    team.until("get", "gmt", tenant, *CHARGED, until=str(80 * GIB))


def test_what_admission_declared_is_charged_also_after_a_restart(
    team: Team, tenant: str, installation: Installation
) -> None:
    becomes_a_tenant(team)
    team.create(pod(annotations={"gpumemory.dev/limit": "2Gi"}))
    team.until("get", "gmt", tenant, *CHARGED, until=str(2 * GIB))
    key = team.cluster.kubectl("get", *SEAL, "-o", "jsonpath={.data}").stdout

    installation.stop_controller()
    installation.start_controller()

    team.create(pod("second", annotations={"gpumemory.dev/limit": "3Gi"}))
    team.until("get", "gmt", tenant, *CHARGED, until=str(5 * GIB))
    assert team.cluster.kubectl("get", *SEAL, "-o", "jsonpath={.data}").stdout == key
    assert len(base64.b64decode(json.loads(key)["seal.key"])) == 32
