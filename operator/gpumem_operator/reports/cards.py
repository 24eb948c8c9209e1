"""A card's memory, in parts that always add up to the whole.

total = reserved + attributed + unattributed + free
        driver     pods         no pod's
"""

from dataclasses import dataclass

from gpumem_operator.reports.pictures import GpuReading


@dataclass(frozen=True, slots=True)
class Parts:
    """All of a card, in bytes; none is negative."""

    total: int
    reserved: int
    attributed: int
    unattributed: int
    free: int


@dataclass(frozen=True, slots=True)
class Card:
    """One card of a node; exactly one of `parts` and `unknown` is set."""

    node: str
    uuid: str
    model: str
    parts: Parts | None
    unknown: str | None = None


def card_of(node: str, gpu: GpuReading, attributed: int | None, unknown: str | None) -> Card:
    """The card as an agent sees it; `attributed` is what its pods hold, in bytes."""
    parts = None
    if unknown is None and attributed is not None:
        parts = _parts(gpu, attributed)
        unknown = None if parts else "NotSupported"
    return Card(node, gpu.uuid, gpu.model, parts, unknown)


def _parts(gpu: GpuReading, attributed: int) -> Parts | None:
    total, reserved, used = gpu.total_bytes, gpu.reserved_bytes, gpu.used_bytes
    if total is None or reserved is None or used is None or reserved > total:
        return None
    room = total - reserved
    # The card and its processes are read one after the other: the parts may be a moment apart.
    attributed = min(attributed, room)
    used = min(max(used, attributed), room)
    return Parts(total, reserved, attributed, used - attributed, room - used)
