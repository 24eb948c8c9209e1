"""The gate of a pod: opening it, after which the pod may run, and keeping others from doing so."""

from typing import Any

from gpumem_operator import names
from gpumem_operator.api.gates import without_gate
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.table import Row
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import Conflict, NotFound
from gpumem_operator.kube.resources import PODS
from gpumem_operator.ledger.groups import WaitingPod


async def open_gate(cache: Cache, writer: Writer, pod: WaitingPod) -> bool:
    """Take our gate from a pod, and take the answer in. Raises Conflict where the pod changed.

    Returns whether a patch went through: a pod that is gone, is another one by now, or has no gate
    any more is left alone.
    """
    row = _as_decided(cache, pod)
    if row is None:
        return False
    body = without_gate(row.value.pod, uid=pod.uid, version=str(pod.version))
    return await _write(cache, writer, pod, body)


async def fence(cache: Cache, writer: Writer, pod: WaitingPod, mark: str) -> None:
    """Change a pod that waits, so that nobody who read it before can open its gate.

    Raises Conflict where the pod changed.
    """
    if _as_decided(cache, pod) is None:
        return
    metadata = {
        "uid": pod.uid,
        "resourceVersion": str(pod.version),
        "annotations": {names.FENCE_ANNOTATION: mark},
    }
    await _write(cache, writer, pod, {"metadata": metadata})


def _as_decided(cache: Cache, pod: WaitingPod) -> Row[PodEntry] | None:
    """The pod as it was when it was decided about; raises Conflict where it changed since."""
    row = cache.pods.get((pod.namespace, pod.name))
    if row is None or row.uid != pod.uid or not row.value.gated:
        return None
    if row.version != pod.version:
        raise Conflict(f"pod {pod.title}", "it changed since it was decided about", 409)
    return row


async def _write(cache: Cache, writer: Writer, pod: WaitingPod, body: dict[str, Any]) -> bool:
    path = PODS.path(pod.name, namespace=pod.namespace)
    try:
        cache.pods.see(await writer.merge(path, body))
    except NotFound:
        return False
    except Conflict:
        try:
            cache.pods.see(await writer.api.get(path))
        except NotFound:
            return False
        raise
    return True
