"""The label by which the Service finds the leader, with the rights of the controller's account."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from devcluster.installation import Installation
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


async def test_the_label_moves_with_the_leader(operator: Installation) -> None:
    for name in ("replica-a", "replica-b"):
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
