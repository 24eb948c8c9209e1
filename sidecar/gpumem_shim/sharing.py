"""Putting caps in place while those that have them go on allocating.

Whoever is lowered may grow until the new cap is in force, and only what it does not hold then is
free for the others. So lowering comes first, and what is raised is worked out after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpumem_shim.limits import Share, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class User:
    """One that allocates: a framework on a GPU, or one of its pools."""

    name: str
    held: Callable[[], int]
    """Bytes at this moment."""
    put: Callable[[int], None]
    """Set the cap, in bytes; called with the one that is in force as well."""
    cap_bytes: int | None = None
    """In force; None where there is none."""
    is_fixed: bool = False
    """Whether the cap in force can not be changed any more."""

    @property
    def share(self) -> Share:
        return Share(self.name, self.held(), self.cap_bytes if self.is_fixed else None)


def share_out(pool_bytes: int, users: Iterable[User]) -> None:
    """Give everyone its cap; all of them are within the pool, unless more is held already."""
    everyone = list(users)
    caps = split(pool_bytes, [user.share for user in everyone])
    lowered = [user for user in everyone if user.name in caps and _is_above(user, caps[user.name])]
    for user in lowered:
        user.put(caps[user.name])
    taken = sum(max(caps[user.name], user.held()) for user in lowered)
    rest = [user for user in everyone if user not in lowered]
    left = split(pool_bytes - taken, [user.share for user in rest])
    for user in rest:
        if user.name in left:
            user.put(left[user.name])


def _is_above(user: User, cap_bytes: int) -> bool:
    # One without a cap that holds nothing yet is about to start, and has to wait for the others.
    return user.held() > 0 if user.cap_bytes is None else user.cap_bytes > cap_bytes
