"""How much of a tenant's quota is left."""

from dataclasses import dataclass, replace

from gpumem_operator.api.quantity import show_apart, show_bytes


@dataclass(frozen=True)
class Room:
    """A quota and what is taken of it, in bytes."""

    limit_bytes: int
    charged_bytes: int
    """Of pods that may run."""
    reserved_bytes: int = 0
    """Kept for pods that are on their way to be charged."""

    @property
    def left_bytes(self) -> int:
        """Below zero where the quota was lowered, or pods came past it: nobody is evicted."""
        return self.limit_bytes - self.charged_bytes - self.reserved_bytes

    def less(self, amount_bytes: int) -> "Room":
        """The same once so much more is reserved."""
        return replace(self, reserved_bytes=self.reserved_bytes + amount_bytes)

    def in_words(self, asked_bytes: int | None = None) -> str:
        """What is left, and where the rest is, for people; told apart from what was asked for.

        Past the quota nothing is left: by how much is told with what has to become free.
        """
        left = max(self.left_bytes, 0)
        known = left if asked_bytes is None else asked_bytes
        return (
            f"{show_apart(left, known)} of {show_bytes(self.limit_bytes)} are left"
            f" ({show_bytes(self.charged_bytes)} charged, {show_bytes(self.reserved_bytes)}"
            " reserved for pods on their way)"
        )
