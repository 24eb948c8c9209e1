"""A pod as its tenant pays for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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


def stored_top_pods(status: Mapping[str, Any]) -> tuple[ChargedPod, ...]:
    """The pods that are charged most, as a raw status names them, the largest first."""
    return tuple(
        ChargedPod(str(row["namespace"]), str(row["name"]), int(row["chargedBytes"]))
        for row in status.get("topPods") or ()
    )


def largest_first(pods: Iterable[ChargedPod]) -> list[ChargedPod]:
    """Those that are charged most, then by namespace and name."""
    return sorted(pods, key=lambda pod: (-(pod.charged_bytes or 0), pod.namespace, pod.name))
