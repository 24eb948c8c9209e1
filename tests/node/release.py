"""The release on a node with other values for the time of a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from chart_rendering import RELEASE, Object
from devcluster import Cluster
from devcluster.installation import CHART, NAMESPACE
from patience import eventually

ROLES = "app.kubernetes.io/component in (webhook, controller)"


@contextmanager
def upgraded(cluster: Cluster, values: str) -> Iterator[None]:
    """`values` as `--set` takes them, in all pods. Afterwards the release before is back in all."""
    where = ("--namespace", NAMESPACE, "--wait", "--timeout=4m")
    cluster.helm("upgrade", RELEASE, CHART, "--reuse-values", f"--set={values}", *where)
    wait_until_settled(cluster)
    try:
        yield
    finally:
        cluster.helm("rollback", RELEASE, *where)
        wait_until_settled(cluster)


def wait_until_settled(cluster: Cluster) -> None:
    """Helm waits for the new pods; the old ones answer as before until they have gone."""
    eventually(
        lambda: all("deletionTimestamp" not in pod["metadata"] for pod in role_pods(cluster))
    )


def role_pods(cluster: Cluster) -> list[Object]:
    """Pods of webhook and controller, those that are being deleted too."""
    get = ["get", "pods", "-n", NAMESPACE, "-o", "json", "-l", ROLES]
    found: list[Object] = json.loads(cluster.kubectl(*get).stdout)["items"]
    return found
