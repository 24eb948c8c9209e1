"""Why an amount or a limit can not be vouched for, in a sentence for people, with the next step."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

EXPLANATIONS: Final = {
    "NoReport": "its sidecar or agent has not reported to the present leader yet",
    "Silent": "its sidecar or agent has been silent for more than 90 s: look at the log of"
    " container gpumem-sidecar, or of the agent on its node",
    "NotMeasured": "it has no sidecar and its node no agent: set monitoring.mode to Sidecar and"
    " create the pod again",
    "NotStarted": "none of its containers has started, so it holds nothing",
    "NoNVMLInSidecar": "the sidecar can not load NVML on this node, and processes without the shim"
    " are not seen otherwise",
    "HostPids": "the driver (before 535.113.01) shows a sidecar the node's process ids: a newer"
    " driver or the node agent is needed",
    "DriverHidesMemory": "the driver (before 565.57.01) shows a sidecar 0 bytes for every process:"
    " a newer driver or the node agent is needed",
    "ProcessesNotShared": "its sidecar can not see its processes: leave shareProcessNamespace"
    " unset, or use the node agent",
    "NotAvailable": "the driver lists the process and gives no amount for it",
    "NotAttributed": "the process is in no container that could be named",
    "DeviceLost": "the GPU has fallen off the bus: the node needs a reboot or a reset of the GPU",
    "Timeout": "the driver did not answer in time",
    "NotSupported": "the driver does not support the question on this GPU",
    "NVMLError": "the driver answered with an error",
    "NoLimit": "nothing was declared, so there is no limit to hold",
    "OverLimit": "it holds more than its limit, so nothing held it",
    "NotHeld": "nothing shows that the limit is held: what frameworks do with their settings has"
    " not been read back",
}


def explain(reason: str) -> str:
    """The reason with its sentence; the reason alone where a newer sender knows more than we."""
    return f"{reason} ({EXPLANATIONS[reason]})" if reason in EXPLANATIONS else reason


def count(reasons: Iterable[str]) -> str:
    """Each reason with the number of times it occurs, the most frequent first."""
    counted = sorted(Counter(reasons).items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{number} {reason}" for reason, number in counted)
