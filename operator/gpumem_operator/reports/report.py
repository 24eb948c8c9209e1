"""The report of a sender and the answer to it: the wire format, version 1.

A report is a whole picture (`Full`), or says that the last one still holds (`Unchanged`). The
sender numbers its reports from its own start; what arrives late or twice is refused. Sidecars and
the agent build the same JSON without this code: one golden file is tested on both sides.

Three values of an amount stay apart: bytes that were measured (0 is 0), `unknown` with a reason,
and nothing listed at all.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic.alias_generators import to_camel

from gpumem_operator.api.model import Model
from gpumem_operator.api.printable import Text

SCHEMA_VERSION = 1

Amount = Annotated[int, Field(ge=0, le=2**63 - 1)]
Uuid = Annotated[str, Field(max_length=96, pattern=r"^[A-Za-z0-9._:/-]*$")]
"""Of a GPU or MIG instance; it becomes the label of a series."""
Word = Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
"""A reason that newer shims may add to; those known now are in `reasons.py`."""
SENDERS_REASONS: Final = frozenset(
    {
        "NoNVMLInSidecar",  # NVML can not be loaded where the sender runs
        "HostPids",  # driver before 535.113.01: PIDs are not those of the sender's namespace
        "DriverHidesMemory",  # driver before 565.57.01: 0 bytes for all in a child namespace
        "NotAvailable",  # NVML lists the process and gives no amount for it
        "ProcessesNotShared",  # the sender sees no PID namespace but its own: no list says much
        "DeviceLost",
        "Timeout",  # NVML did not answer in time
        "NotSupported",
        "NVMLError",
        "NotAttributed",  # the process is in no container that the sender can name
    }
)
"""Those that are known here. A newer sender may tell others."""


class Sent(BaseModel):
    """What senders write: checked almost without code of Python's for each of its objects, of which
    a hostile report has thousands, and no further than to the first fault of a list.

    Sidecars live as long as their pods, so a leader hears older and newer ones: a field that came
    later may be missing, and one that is not known here yet is passed over.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)


class Cap(Sent):
    """The most that a framework's allocator may hold on one GPU."""

    gpu: Uuid
    cap_bytes: Amount


class Outside(Sent):
    """What a process holds on one GPU beside its frameworks' allocators."""

    gpu: Uuid
    bytes: Amount


class Framework(Sent):
    """One framework that a process has imported, and what became of its cap."""

    name: Text
    version: Text | None = None
    caps: Annotated[list[Cap], Field(max_length=256), FailFast()] = []
    """Of the process's GPU; of all its GPUs where that one is not known."""
    not_capped: Word | None = None
    """Why it has no cap on the GPUs that `caps` does not list."""
    cap_hits: Amount | None = None
    """Allocations so far that failed on a cap; None is unknown."""
    reclaim: Word | None = None
    """Supported or Unsupported: whether the allocator can give cached memory back."""


class Server(Sent):
    """An inference server in a process, and what became of the share of the card that it takes."""

    name: Text
    version: Text | None = None
    argument: Text
    """As the server names it."""
    asked: Annotated[Text, Field(max_length=32)]
    """As the program had it, in the server's own form."""
    applied: Annotated[Text, Field(max_length=32)]
    reason: Word | None = None
    """Why it does not bound what the server takes; None where it does."""


class Shim(Sent):
    """What the shim in a process wrote about itself: the workload's own claim."""

    frameworks: Annotated[list[Framework], Field(max_length=16), FailFast()] = []
    limit_bytes: Amount | None = None
    context_reserve_bytes: Amount | None = None
    """What it kept beside its caps for everything that is in no allocator."""
    processes_per_gpu: Amount | None = None
    """By how many it divided the limit."""
    outside: Annotated[list[Outside], Field(max_length=256), FailFast()] = []
    """Where it could measure it."""
    servers: Annotated[list[Server], Field(max_length=4), FailFast()] = []


class Process(Sent):
    """One process on one GPU. Exactly one of `bytes` and `unknown` is set; both for what a process
    claims (source Shim) where nothing but its word is known."""

    pid: Annotated[int, Field(ge=1, le=2**31 - 1)]
    """In the sender's PID namespace."""
    start_time: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """Field 22 of /proc/PID/stat; None where /proc could not be read."""
    gpu: Uuid
    """UUID of the GPU or MIG instance; empty where only the shim knows of the process."""
    pod_uid: Text | None = None
    """None where the process belongs to no pod, or to one that the sender can not name."""
    container: Text | None = None
    container_id: Text | None = None
    bytes: Amount | None = None
    unknown: Word | None = None
    source: Literal["NVML", "Shim"] = "NVML"
    mps: bool = False
    """Whether NVML lists it as a client of an MPS server."""
    mps_limit_bytes: Amount | None = None
    """The pinned limit on this GPU that the client of MPS was started with. None: it has none, or
    its environment could not be read."""
    driver_limit_bytes: Amount | None = None
    """The hard limit on this GPU of the container's cgroup, as NVML reads it back; only the agent
    knows. None: there is none, or it could not be read."""
    shim: Shim | None = None
    shim_left_out: bool = False
    """Whether there is a `shim` for which the report had no room."""

    @model_validator(mode="after")
    def _one_of_two(self) -> "Process":
        if self.bytes is None and self.unknown is None:
            raise ValueError("one of bytes and unknown must be given")
        if self.bytes is not None and self.unknown is not None and self.source == "NVML":
            raise ValueError("exactly one of bytes and unknown must be given")
        return self


class Gpu(Sent):
    """One card or MIG instance that the sender sees."""

    uuid: Uuid
    index: Annotated[int, Field(ge=0, le=4096)]
    model: Text = ""
    parent: Uuid | None = None
    """UUID of the card of a MIG instance."""
    total_bytes: Amount | None = None
    reserved_bytes: Amount | None = None
    used_bytes: Amount | None = None
    """By processes and the driver's contexts, without what is reserved; where the reserve is
    unknown (a driver before 510.39.01 does not tell it), it may be counted here."""
    unknown: Word | None = None
    """Why amounts are missing, or why processes of this card may be."""


class Assignment(Sent):
    """GPUs that the kubelet handed to a container; only the agent knows.

    The kubelet names a pod without its UID, so for a moment this may tell of an earlier pod of the
    same name.
    """

    pod_namespace: Text
    pod_name: Text
    container: Text
    gpus: Annotated[list[Uuid], Field(max_length=256), FailFast()]
    """Of cards and MIG instances."""
    unnamed: Annotated[int, Field(ge=0, le=4096)] = 0
    """How many more it has, by names that the agent could not make out."""


class Acknowledgement(Sent):
    """What became of an order."""

    id: Text
    result: Literal["Done", "Busy", "Unsupported", "NoSuchProcess", "Failed"]
    bytes: Amount | None = None
    """Bytes given back by a Reclaim."""


class Report(Sent):
    """One message of a sender."""

    schema_version: Literal[1]
    sender: Literal["Sidecar", "NodeAgent"]
    sender_start: Annotated[Text, Field(min_length=1, max_length=64)]
    """Different for each start of the sender, for example a UUID."""
    sequence: Annotated[int, Field(ge=0, le=2**53)]
    age_milliseconds: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """Since the picture was begun, when the report was sent: of `Unchanged` the newest one, which
    was the same. A duration, because clocks of two machines may differ. None: a sender of before
    this field."""
    kind: Literal["Full", "Unchanged"]
    driver_version: Text | None = None
    """None where NVML could not be loaded."""
    unknown: Word | None = None
    """Why the whole picture is missing."""
    driver_limits: Literal["Supported", "Unsupported"] | None = None
    """Whether the driver can limit a container's cgroup on a card of this node; None where nobody
    looked."""
    gpus: Annotated[list[Gpu], Field(max_length=256), FailFast()] = []
    processes: Annotated[list[Process], Field(max_length=4096), FailFast()] = []
    processes_left_out: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """How many more there are, for which the report had no room."""
    assignments: Annotated[list[Assignment], Field(max_length=1024), FailFast()] = []
    acknowledgements: Annotated[list[Acknowledgement], Field(max_length=256), FailFast()] = []


class Ours(Model):
    """What the leader writes: its code names fields as Python does."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)


class Limit(Ours):
    """What a container may hold on each of its GPUs."""

    pod_uid: Text
    container: Text
    container_id: Text | None = None
    """Without the runtime's name; None where the container has not started. Of a process without
    a shim a sender knows nothing else."""
    limit_bytes: Amount


class Order(Ours):
    """Something that a sender shall do to one process; valid only for this start of it."""

    id: Text
    action: Literal["Reclaim", "Kill"]
    pod_uid: Text
    container: Text
    pid: int
    start_time: int


class Answer(Ours):
    """What the leader says to a report that it took."""

    schema_version: Literal[1] = 1
    next: Literal["Full", "Any"] = "Any"
    """Full: the leader has no picture of this sender."""
    urgent: bool = False
    """Whether a picture is wanted every 500 ms: a pod of the sender is over its limit, if only by
    what the leader alone knows."""
    limits: list[Limit] = []
    orders: list[Order] = []
