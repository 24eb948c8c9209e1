"""Never more replicas than every tenant can pay for."""

from collections.abc import Sequence

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold, TenantRoom


def payable(rooms: Sequence[TenantRoom], *, pods: int, replicas: int) -> int | None:
    """The most replicas that may be asked for; None where no tenant bounds them.

    `pods` are there and paid for, or wait and are counted already. What is there stays: a quota
    that was lowered takes no replicas away.
    """
    if not rooms:
        return None
    return max(replicas, pods + min(_further(room) for room in rooms))


def told(rooms: Sequence[TenantRoom]) -> Hold:
    """Why no more can be paid for, by the tenant with the least room."""
    tightest = min(rooms, key=lambda room: (_further(room), room.tenant))
    if tightest.pod_bytes is None:
        return Hold(
            reasons.CHARGE_UNKNOWN,
            f"tenant {tightest.tenant} can not be asked for room, because it is not known what a"
            " pod is charged: declare its GPU memory",
        )
    return Hold(
        reasons.QUOTA_REACHED,
        f"tenant {tightest.tenant} has {show_bytes(max(tightest.room_bytes, 0))} left, and a pod is"
        f" charged {show_bytes(tightest.pod_bytes)}: raise its quota, or free some of it",
    )


def _further(room: TenantRoom) -> int:
    """How many pods more the tenant can pay for."""
    if room.pod_bytes is None:
        return 0
    if room.pod_bytes == 0:
        return 100_000
    return max(room.room_bytes, 0) // room.pod_bytes
