"""Taking a pod away: by the Eviction API, or by deleting it."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.steps import RETRY_TIME, Removal
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import PODS
from gpumem_operator.reports.measured import MeasuredPod

_TOO_MANY: Final = 429
_BUDGET: Final = "DisruptionBudget"
"""The API server's word for the cause. It answers 429 to whoever asks too often, too."""


@dataclass(frozen=True)
class Outcome:
    """What the API server said."""

    result: Literal["Done", "BlockedByPDB", "Failed"]
    message: str = ""


async def remove(writer: Writer, pod: MeasuredPod, removal: Removal) -> Outcome:
    """One attempt, at this very pod and no later one of its name."""
    try:
        if removal.action == "Delete":
            path = PODS.path(pod.name, namespace=pod.namespace)
            await writer.delete(path, uid=pod.uid, grace_seconds=removal.grace_seconds)
        else:
            await _evict(writer, pod, removal.grace_seconds)
    except NotFound:
        return Outcome("Done", "it was gone already")
    except Conflict as error:
        return Outcome("Failed", str(error))
    except ApiError as error:
        budget = error.causes.get(_BUDGET)
        if error.status != _TOO_MANY or budget is None:
            return Outcome("Failed", str(error))
        return Outcome("BlockedByPDB", _blocked(pod, budget))
    return Outcome("Done", removal.note)


def _blocked(pod: MeasuredPod, budget: str) -> str:
    """`budget` is the API server's sentence, which has the budget's name and numbers."""
    return (
        f"A PodDisruptionBudget keeps it: {budget.rstrip('.')}. It is tried again every"
        f" {RETRY_TIME.seconds} s. Next step: run more replicas, or let the budget allow a"
        f" disruption (kubectl get pdb -n {pod.namespace})"
    )


async def _evict(writer: Writer, pod: MeasuredPod, grace_seconds: int | None) -> None:
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": options,
    }
    path = PODS.path(pod.name, namespace=pod.namespace, subresource="eviction")
    await writer.create(path, body)
