"""Whether a picture still tells of now: reports have to go on, and the looks behind them.

A sender whose sampling hangs goes on to say that nothing changed. So each report tells how old its
picture is, and that counts like silence.
"""

from gpumem_operator.reports.pictures import Picture
from gpumem_operator.reports.reasons import SAMPLER_STUCK, SILENT
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS


def why_stale(picture: Picture, now: float) -> str | None:
    """None, or the reason why what the picture shows may be over, in the seconds of `heard`."""
    if now - picture.heard > SILENT_AFTER_SECONDS:
        return SILENT
    return SAMPLER_STUCK if now - picture.sampled > SILENT_AFTER_SECONDS else None
