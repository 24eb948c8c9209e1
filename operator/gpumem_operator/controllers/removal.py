"""Taking a pod away: by the Eviction API, or by deleting it."""

from dataclasses import dataclass
from typing import Final, Literal

from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.steps import Removal
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import PODS
from gpumem_operator.reports.measured import MeasuredPod

_BUDGET: Final = "disruption budget"
"""In the API server's sentence. It answers 429 to whoever asks too often, too."""


@dataclass(frozen=True)
class Outcome:
    """What the API server said."""

    result: Literal["Done", "BlockedByPDB", "Failed"]
    message: str = ""


async def remove(writer: Writer, pod: MeasuredPod, removal: Removal) -> Outcome:
    """One attempt, at this very pod and no later one of its name."""
    try:
        if removal.action == "Delete":
            await writer.delete(PODS.path(pod.name, namespace=pod.namespace), uid=pod.uid)
        else:
            await _evict(writer, pod)
    except NotFound:
        return Outcome("Done", "it was gone already")
    except Conflict as error:
        return Outcome("Failed", str(error))
    except ApiError as error:
        blocked = error.status == 429 and _BUDGET in str(error)
        return Outcome("BlockedByPDB" if blocked else "Failed", str(error))
    return Outcome("Done")


async def _evict(writer: Writer, pod: MeasuredPod) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    path = PODS.path(pod.name, namespace=pod.namespace, subresource="eviction")
    await writer.create(path, body)
