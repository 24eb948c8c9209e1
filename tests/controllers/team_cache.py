"""What a leader knows of the namespace `team`: its tenant, and its pods as admission left them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, sealed, tenant
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.statuses import StatusWorker
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api

SEAL = Seal(b"k" * 32)
NAMESPACE: Raw = {"metadata": {"name": "team", "uid": "uid-of-team", "resourceVersion": "1"}}


def team_cache(*pods: Raw, **status: Any) -> Cache:
    """`status` is the tenant's."""
    cache = Cache(Values(), own_namespace="operator")
    cache.seal = SEAL
    cache.namespaces.see(NAMESPACE)
    cache.tenants.see({**tenant(), "status": status})
    for one in pods:
        cache.pods.see(sealed(one, SEAL))
    return cache


def measured_pod(name: str = "train") -> Raw:
    """One with a limit of 8Gi that runs beside a sidecar."""
    pod = managed_pod(name, policy="training", limit_bytes=8 * GIB, phase="Running")
    sidecar = {"name": "gpumem-sidecar"}
    pod["spec"] |= {
        "shareProcessNamespace": True,
        "initContainers": [sidecar],
        "nodeName": "gpu-1",
    }
    return pod


def status_worker(
    cache: Cache,
    api: Api,
    *,
    now: Callable[[], datetime],
    epoch: Callable[[], int | None] = lambda: 1,
    periods: Periods | None = None,
) -> StatusWorker:
    """Of a leader without a memory."""
    return StatusWorker(
        cache,
        Writer(api, Leads()),
        values=Values(),
        epoch=epoch,
        periods=periods or Periods(),
        now=now,
    )
