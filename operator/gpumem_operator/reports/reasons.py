"""Why an amount or a limit can not be vouched for, in a sentence for people, with the next step."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

NO_LIMIT: Final = "NoLimit"
OVER_LIMIT: Final = "OverLimit"
SEVERAL_PROCESSES: Final = "SeveralProcesses"
NO_SHIM: Final = "NoShim"
NO_FRAMEWORK: Final = "NoFramework"
NOT_CAPPED: Final = "NotCapped"
NOT_ASKED: Final = "NotAsked"
NO_PROCESS: Final = "NoProcess"
ONLY_CLAIMED: Final = "OnlyClaimed"
NOT_ATTRIBUTED: Final = "NotAttributed"
CACHE_SIZE_GIVEN: Final = "CacheSizeGiven"
NO_REPORT: Final = "NoReport"
"""Nobody has reported yet, or not since the present leader began."""
REPORT_TOO_LARGE: Final = "ReportTooLarge"
SILENT: Final = "Silent"
SAMPLER_STUCK: Final = "SamplerStuck"
SENDERS_DISAGREE: Final = "SendersDisagree"
TOO_MANY_GPUS: Final = "TooManyGPUs"
NOT_AVAILABLE: Final = "NotAvailable"
NEWER_REASON: Final = "NewerReason"
"""Whatever a newer sender tells and this operator does not know: anything may be sent as a reason,
and it becomes the label of a series."""


class Reason(NamedTuple):
    """A reason for people."""

    cause: str
    step: str = ""
    """What to do next; empty where there is nothing, or the cause can not be told from here."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.step}" if self.step else self.cause


def _old_driver(before: str, shows: str) -> Reason:
    return Reason(
        f"the driver (before {before}) shows a sidecar {shows}",
        "use a newer driver or the node agent",
    )


REASONS: Final = {
    NO_REPORT: Reason("its sidecar or agent has not reported to the present leader yet"),
    SILENT: Reason(
        "its sidecar or agent has been silent for more than 90 s",
        "look at the log of container gpumem-sidecar, or of the agent on its node",
    ),
    SAMPLER_STUCK: Reason(
        "its sidecar or agent reports, and the latest numbers that it has are more than 90 s old",
        "look at the log of container gpumem-sidecar, or of the agent on its node, and start it"
        " anew",
    ),
    REPORT_TOO_LARGE: Reason(
        "there are more processes, or longer claims of shims, than fit into one report, and what"
        " did not fit was left out",
        "use the node agent, which may send more, or fewer processes",
    ),
    "NotMeasured": Reason(
        "it has no sidecar and its node no agent",
        "set monitoring.mode to Sidecar and create the pod again",
    ),
    "NoAgentOnNode": Reason(
        "monitoring.mode is NodeAgent, and no agent has reported for its node to the present"
        " leader",
        "set the chart's agent.enabled, and look whether DaemonSet <release>-agent has a pod there",
    ),
    "NoNVMLInSidecar": Reason(
        "the sidecar (or agent) can not load NVML on this node, and a sidecar sees processes"
        " without the shim in no other way",
        "use the node agent (chart value agent.enabled)",
    ),
    "HostPids": _old_driver("535.113.01", "the node's process ids"),
    "DriverHidesMemory": _old_driver("565.57.01", "0 bytes for every process"),
    "ProcessesNotShared": Reason(
        "its sidecar can not see its processes",
        "leave shareProcessNamespace unset, or use the node agent",
    ),
    SENDERS_DISAGREE: Reason(
        "its sidecar lists processes that hold GPU memory, and the agent of its node sees none of"
        " it",
        "look at the card's USED BY OTHERS in kubectl gpumem top -A and at the agent's log: it may"
        " be unable to tell whose these processes are",
    ),
    TOO_MANY_GPUS: Reason(
        "it names GPUs that no sidecar can tell of: more than a pod can have, or none by their form"
    ),
    NEWER_REASON: Reason(
        "its sidecar or agent is newer than the operator, and tells a reason that this one does not"
        " know",
        "look at its log, or upgrade the operator",
    ),
    NOT_AVAILABLE: Reason(
        "the driver lists the process and gives no amount for it, or one that no GPU has"
    ),
    NOT_ATTRIBUTED: Reason("a process that may be its own is in no container that could be named"),
    "DeviceLost": Reason(
        "the GPU has fallen off the bus", "the node needs a reboot or a reset of the GPU"
    ),
    "Timeout": Reason("the driver did not answer in time"),
    "NotSupported": Reason("the driver does not support the question on this GPU"),
    "NVMLError": Reason("the driver answered with an error"),
    NO_PROCESS: Reason(
        "no process of it is on a GPU, so there is nothing to hold and nothing to see"
    ),
    ONLY_CLAIMED: Reason(
        "only the workload's own word tells what it holds, and NVML is not read where the sidecar"
        " runs",
        "use the node agent or a runtime class that gives the sidecar NVML",
    ),
    NO_LIMIT: Reason(
        "nothing was declared, so there is no limit to hold",
        "declare what it needs (nvidia.com/memory), or give its policy, or its tenant's"
        " defaultPolicy, limits.default",
    ),
    OVER_LIMIT: Reason(
        "it holds, or its caps let it hold, more than its limit, so nothing holds it",
        "have the program take less, or declare what it needs and create the pod again",
    ),
    SEVERAL_PROCESSES: Reason(
        "the caps of its processes together are more than its limit",
        "set gpumemory.dev/processes-per-gpu to their number, or use fewer processes per GPU",
    ),
    NO_SHIM: Reason(
        "a process without the shim is on the GPU (another program, an interpreter that skips"
        " PYTHONPATH, changed variables)",
        "start it with the variables of its container, or let the driver hold the limit",
    ),
    NO_FRAMEWORK: Reason(
        "the process uses the GPU by something that the shim can not cap",
        "use a framework that it knows, or let the driver or MPS hold the limit",
    ),
    NOT_CAPPED: Reason(
        "a framework in the process has no cap on the GPU",
        "do what the shim's reason beside it asks for, or let the driver or MPS hold the limit",
    ),
    NOT_ASKED: Reason(
        "a container that asked for no GPU holds memory of one, and no limit is on it",
        "ask for the GPU in resources.limits, or set NVIDIA_VISIBLE_DEVICES to void there",
    ),
    "TooNear": Reason(
        "the limit leaves nothing beside the context reserve",
        "raise it, or lower limits.contextReserve",
    ),
    "NoTotal": Reason("the GPU does not say how much memory it has"),
    CACHE_SIZE_GIVEN: Reason(
        "the size of its cache is given in bytes, which goes before the share",
        "lower --kv-cache-memory-bytes, or leave it out",
    ),
}


def explain(reason: str) -> str:
    """The reason with its sentence; the reason alone where a newer sender knows more than we."""
    return f"{reason} ({REASONS[reason]})" if reason in REASONS else reason


def cause(reason: str) -> str:
    """The reason with what is behind it, without the next step."""
    return f"{reason} ({REASONS[reason].cause})" if reason in REASONS else reason


def count(reasons: Iterable[str]) -> str:
    """Each reason with the number of times it occurs, the most frequent first."""
    counted = sorted(Counter(reasons).items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{number} {reason}" for reason, number in counted)
