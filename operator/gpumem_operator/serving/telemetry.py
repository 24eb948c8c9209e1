"""Numbers of every listener."""

from typing import Final, Literal

from prometheus_client import Counter

Why = Literal["Late", "Displaced", "TooMuchHeld", "NoPlace"]

ENDED: Final = Counter(
    "gpumem_connections_ended_total",
    "Connections that the process ended by itself, by listener (reports, webhook, health) and"
    " reason: Late (a handshake, head, body or the taking of an answer took too long), Displaced"
    " (made room for another), TooMuchHeld (unanswered requests held too many bytes), NoPlace"
    " (came when all places were at work).",
    ["listener", "reason"],
)
