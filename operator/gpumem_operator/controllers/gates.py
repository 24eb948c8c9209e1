"""Opening the gate of a pod: the one edit after which it may run."""

from gpumem_operator.api.gates import without_gate
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import Conflict, NotFound
from gpumem_operator.kube.resources import PODS


async def open_gate(cache: Cache, writer: Writer, key: Key, uid: str) -> None:
    """Take our gate from a pod, and take the answer in. Raises Conflict where the pod changed.

    A pod that is gone, is another one by now, or has no gate any more is left alone.
    """
    row = cache.pods.get(key)
    if row is None or row.uid != uid or not row.value.gated:
        return
    body = without_gate(row.value.pod, uid=uid, version=str(row.version))
    path = PODS.path(key[1], namespace=key[0])
    try:
        cache.pods.see(await writer.merge(path, body))
    except NotFound:
        return
    except Conflict:
        try:
            cache.pods.see(await writer.api.get(path))
        except NotFound:
            return
        raise
