"""A pod as its tenant pays for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpumem_operator.api.measure import NOT_MEASURED, Measure


@dataclass(frozen=True)
class ChargedPod:
    """One pod that the tenant pays for now."""

    namespace: str
    name: str
    charged_bytes: int | None
    """None where the pod's charge is not known."""
    measure: Measure = NOT_MEASURED

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def largest_first(pods: Iterable[ChargedPod]) -> list[ChargedPod]:
    """Those that are charged most, then by namespace and name."""
    return sorted(pods, key=lambda pod: (-(pod.charged_bytes or 0), pod.namespace, pod.name))
