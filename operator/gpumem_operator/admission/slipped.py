"""Which pods went past admission, and what the label `gpumemory.dev/managed` should say on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.pods import asks_for_gpus, is_gpu_pod, is_handled
from gpumem_operator.api.records import Surroundings
from gpumem_operator.api.values import Values

MANAGED: Final = "true"
SLIPPED: Final = "false"


@dataclass(frozen=True)
class Relabel:
    """One pod whose label has to be set; the uid keeps the write from a namesake."""

    namespace: str
    name: str
    uid: str
    value: str


def relabel(pod: Mapping[str, Any], surroundings: Surroundings, values: Values) -> Relabel | None:
    """What to do about the label of one stored pod, None where it is right as it is.

    A pod that admission handled has "true". A GPU pod that a policy or a tenant of its namespace
    should have handled has "false". Other pods are not touched, whatever they carry: a label that
    somebody else put there changes nothing that counts. Finished pods get their label too.
    """
    wanted = _wanted(pod, surroundings, values)
    metadata = pod.get("metadata") or {}
    if wanted is None or (metadata.get("labels") or {}).get(names.MANAGED_LABEL) == wanted:
        return None
    return Relabel(
        metadata.get("namespace") or "",
        metadata.get("name") or "",
        metadata.get("uid") or "",
        wanted,
    )


def is_right_whatever_decides(labels: Mapping[str, str], *, gpu: bool, handled: bool) -> bool:
    """Whether `relabel` has nothing to do whatever the surroundings are: admission handled the
    pod, which its label says. So it is with nearly all pods."""
    return gpu and handled and labels.get(names.MANAGED_LABEL) == MANAGED


def _wanted(pod: Mapping[str, Any], surroundings: Surroundings, values: Values) -> str | None:
    if not is_gpu_pod(pod, values.memory_resource):
        return None
    if is_handled(pod):
        return MANAGED
    if not asks_for_gpus(pod, values.memory_resource):
        return None
    labels = (pod.get("metadata") or {}).get("labels") or {}
    # Tenants and policies that can not be read do not count: which pods they mean is not known.
    tenants = [tenant for tenant in surroundings.tenants if tenant.spec is not None]
    concerned = bool(tenants) or policy_for(labels, surroundings.policies) is not None
    return SLIPPED if concerned else None
