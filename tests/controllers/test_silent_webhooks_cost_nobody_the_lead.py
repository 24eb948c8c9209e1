"""Somebody's webhook never answers for pods of many namespaces: the leader stays, and works."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from controllers.cluster_view import View
from controllers.silent_webhook import silent_about_pods
from controllers.stored import Raw, managed_pod, tenant
from devcluster.installation import NAMESPACE, RELEASE
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.kube.election import DEFAULT_TIMINGS

pytestmark = pytest.mark.cluster
LEASE = f"{RELEASE}-controller"
SPACES, PODS_EACH = 10, 12
"""More pods than the leader has connections."""


class Scene:
    """Two teams, each with a tenant; one has many namespaces."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.id = uuid.uuid4().hex[:6]
        self.silent, self.other = f"silent-{self.id}", f"other-{self.id}"
        self.spaces = [f"{self.silent}-{number}" for number in range(SPACES)]

    def create(self) -> None:
        teams = {**dict.fromkeys(self.spaces, self.silent), self.other: self.other}
        spaces: list[Raw] = [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "labels": {"gpumemory.dev/ignore": "true", "team": team},
                },
                "spec": {},
            }
            for name, team in teams.items()
        ]
        tenants = [
            tenant(team, limit="10Ti", selector={"matchLabels": {"team": team}})
            for team in (self.silent, self.other)
        ]
        self.view.create(*spaces, *tenants)

    def delete(self) -> None:
        self.view.cluster.kubectl("delete", "gmt", self.silent, self.other)
        self.view.cluster.kubectl("delete", "pods", "-A", "-l", f"scene={self.id}", "--force")
        self.view.cluster.kubectl("delete", "namespace", *self.spaces, self.other, "--wait=false")

    def waits(self, namespace: str, name: str) -> Raw:
        return managed_pod(
            name,
            policy="training",
            namespace=namespace,
            limit_bytes=GIB,
            labels={"scene": self.id},
            gates=(names.QUOTA_GATE,),
        )

    def gated(self, *namespaces: str) -> int:
        pods = [
            pod
            for pod in self.view.everything("pods")
            if pod["metadata"]["namespace"] in namespaces and pod["spec"].get("schedulingGates")
        ]
        return len(pods)

    def goes_on(self, name: str) -> None:
        self.view.create(self.waits(self.other, name))
        self.view.until(lambda: self.gated(self.other) == 0)


@pytest.fixture
def scene(view: View) -> Iterator[Scene]:
    scene = Scene(view)
    scene.create()
    yield scene
    scene.delete()


def renewed(lease: Raw) -> datetime:
    return datetime.fromisoformat(lease["spec"]["renewTime"])


def test_the_leader_stays_and_works_for_others_until_the_silence_ends(scene: Scene) -> None:
    view = scene.view
    with silent_about_pods(view.cluster, scene.silent, labels={"team": scene.silent}):
        everyone = [
            scene.waits(space, f"train-{number}")
            for space in scene.spaces
            for number in range(PODS_EACH)
        ]
        view.create(scene.waits(scene.spaces[0], "probe"))
        # API servers take a webhook up on their own time.
        probe = ["label", "pod", "probe", "-n", scene.spaces[0], "--request-timeout=1s"]
        view.until(lambda: view.try_kubectl(*probe, f"at={uuid.uuid4().hex}").returncode != 0)
        view.create(*everyone)
        before = view.get("lease", LEASE, NAMESPACE)
        scene.goes_on("first")

        later = renewed(before) + timedelta(seconds=2 * DEFAULT_TIMINGS.lease_seconds)
        view.until(lambda: renewed(view.get("lease", LEASE, NAMESPACE)) > later)

        after = view.get("lease", LEASE, NAMESPACE)
        same = ("holderIdentity", "leaseTransitions")
        assert [after["spec"][key] for key in same] == [before["spec"][key] for key in same]
        assert scene.gated(*scene.spaces) >= len(everyone)
        scene.goes_on("second")
        view.wait(f"gmt/{scene.other}", ".status.chargedBytes", str(2 * GIB))
    view.until(lambda: scene.gated(*scene.spaces) == 0)
