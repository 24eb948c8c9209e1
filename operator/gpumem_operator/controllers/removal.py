"""Taking a pod away: by the Eviction API, or by deleting it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.steps import RETRY_TIME, Removal
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import PODS
from gpumem_operator.reports.measured import MeasuredPod

_TOO_MANY: Final = 429
_FORBIDDEN: Final = 403
_NOT_GRANTED: Final = " cannot "
"""In the API server's sentence where no role gives the right; whoever else forbids it says why."""
_NO_RIGHT: Final[Mapping[str, str]] = {
    "Delete": (
        "The controllers have no right to delete pods, which chart value enforcement.deletePods"
        " gives them. Next step: set it to true, or take Delete out of spec.enforcement.actions"
    ),
    "Evict": (
        "The controllers have no right to evict pods, which the chart gives them. Next step: helm"
        " upgrade, or give their ClusterRole create of pods/eviction back"
    ),
}
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
        return Outcome("Done", "It was gone already")
    except Conflict as error:
        return Outcome("Failed", str(error))
    except ApiError as error:
        if error.status == _FORBIDDEN and _NOT_GRANTED in str(error):
            return Outcome("Failed", _NO_RIGHT[removal.action])
        budget = error.causes.get(_BUDGET)
        if error.status != _TOO_MANY or budget is None:
            return Outcome("Failed", str(error))
        return Outcome("BlockedByPDB", _blocked(pod, budget))
    return Outcome("Done", removal.note)


def _blocked(pod: MeasuredPod, budget: str) -> str:
    """`budget` is the API server's sentence, which has the budget's name and numbers."""
    return (
        f"A PodDisruptionBudget keeps it: {budget.rstrip('.')}. While it is over its limit, it is"
        f" tried again every {RETRY_TIME.seconds} s. Next step: run more replicas, or let the"
        f" budget allow a disruption (kubectl get pdb -n {pod.namespace})"
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
