"""The label by which the Service finds the leader, with the rights of the controller's account."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from devcluster.installation import Installation
from devcluster.leader_service import LEADER_ADDRESS
from gpumem_operator import names
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.report_service import LeaderLabelWorker
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import connect

pytestmark = pytest.mark.cluster


class Leads:
    """Holds the lease as long as the test runs."""

    write_seconds = 10.0

    def check(self) -> None:
        """Nobody else leads."""


@asynccontextmanager
async def worker(operator: Installation, pod: str) -> AsyncIterator[LeaderLabelWorker]:
    async with connect(operator.kubeconfig_of("controller")) as api:
        writer = Writer(api, Leads())
        yield LeaderLabelWorker(writer, namespace=operator.namespace, pod=pod, periods=Periods())


def labelled(operator: Installation) -> list[str]:
    found = operator.cluster.kubectl(
        "get", "pods", "-n", operator.namespace, "-l", f"{names.LEADER_LABEL}=true", "-o", "name"
    )
    return [name for name in found.stdout.split() if "replica-" in name]


@pytest.fixture
def replicas(operator: Installation) -> Iterator[tuple[str, str]]:
    """Names of pods that come and go; at the end the leader of the other tests is found again."""
    names_of_pods, where = ("replica-a", "replica-b"), ("-n", operator.namespace)
    yield names_of_pods
    kubectl = operator.cluster.kubectl
    kubectl("delete", "pod", *names_of_pods, "--force", *where)
    kubectl("label", "pod", "leader", f"{names.LEADER_LABEL}=true", *where)
    chosen = ("-l", f"kubernetes.io/service-name={operator.release}-report")
    until = "--for=jsonpath={.endpoints[0].addresses[0]}=" + LEADER_ADDRESS
    kubectl("wait", "endpointslices", *chosen, until, "--timeout=60s", *where)


async def test_the_label_moves_with_the_leader(
    operator: Installation, replicas: tuple[str, str]
) -> None:
    for name in replicas:
        container = {"name": "controller", "image": "none"}
        metadata = {"name": name, "namespace": operator.namespace}
        spec = {"containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        operator.cluster.kubectl("create", "-f", "-", input=json.dumps(pod))
    async with worker(operator, "replica-a") as first, worker(operator, "replica-b") as second:
        await first.reconcile()
        assert labelled(operator) == ["pod/replica-a"]
        await second.reconcile()
        assert labelled(operator) == ["pod/replica-b"]
        await second.reconcile()
        assert labelled(operator) == ["pod/replica-b"]
