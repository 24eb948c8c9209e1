"""The latest picture of every sender, and the rules by which a report replaces it.

A sender numbers its reports from its own start. What is not newer than the last one is refused, and
so is whatever comes from a start that another one has followed. A report that says `Unchanged` only
counts where the one before it was taken in: otherwise nobody here knows what has not changed.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpumem_operator.reports.gpu_names import NodeNames, PodNames
from gpumem_operator.reports.pictures import Picture, Sender, picture_of, sampled_at
from gpumem_operator.reports.report import Report

SILENT_AFTER_SECONDS: Final = 90.0
"""Three times the longest pause of a sender: what is older is Unknown."""
_FORGET_AFTER_SECONDS: Final = 600.0
_MARK_BYTES: Final = 4
_REMEMBERED_STARTS: Final = 256
"""As many as a sender can begin within a minute, at four reports per second: longer than a report
of an earlier start can be under way."""


class OutOfSequence(Exception):
    """The report is not newer than the last one of this sender."""


class TooManySenders(Exception):
    """The store is full."""


class EarlierStarts:
    """The latest starts of one sender that were followed by another, a mark of four bytes each: of
    thousands of senders, each may begin anew as often as it likes."""

    def __init__(self) -> None:
        self._marks = b""

    def __contains__(self, start: str) -> bool:
        mark = self._mark(start)
        return any(
            self._marks.startswith(mark, at) for at in range(0, len(self._marks), _MARK_BYTES)
        )

    def add(self, start: str) -> None:
        """Remember it, and forget the oldest where there are too many."""
        self._marks = (self._marks + self._mark(start))[-_REMEMBERED_STARTS * _MARK_BYTES :]

    @staticmethod
    def _mark(start: str) -> bytes:
        return hashlib.blake2b(start.encode(), digest_size=_MARK_BYTES).digest()


@dataclass
class _Known:
    """What is remembered of one sender."""

    start: str
    sequence: int
    heard: float
    picture: Picture | None = None
    earlier_starts: EarlierStarts = field(default_factory=EarlierStarts)
    names: PodNames = field(default_factory=PodNames)


class Store:
    """Pictures by sender. The order in which different senders report does not matter."""

    def __init__(self, *, most_senders: int = 20_000) -> None:
        self._most_senders = most_senders
        self._known: dict[Sender, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def take(self, sender: Sender, report: Report, now: float, *, keep: bool = True) -> bool:
        """Take in a report that began to arrive at `now` (seconds); whether a picture is here.

        What nobody needs is taken without being kept, and then nothing is missing.

        Raises OutOfSequence and TooManySenders; nothing has changed then.
        """
        known = self._known.get(sender)
        if known is None:
            if len(self._known) >= self._most_senders:
                raise TooManySenders(f"{self._most_senders} senders are known already")
            known = _Known(report.sender_start, -1, now)
        elif known.start != report.sender_start:
            if report.sender_start in known.earlier_starts:
                raise OutOfSequence(
                    f"start {report.sender_start!r} of this sender was followed by another one"
                )
            known.earlier_starts.add(known.start)
            known = replace(known, start=report.sender_start, sequence=-1, heard=now, picture=None)
        elif report.sequence <= known.sequence:
            raise OutOfSequence(
                f"sequence {report.sequence} is not above the last one, {known.sequence}"
            )
        self._known[sender] = known
        if not keep:
            known.sequence, known.heard, known.picture = report.sequence, now, None
            return True
        return _renew(known, report, sender, now)

    def picture(self, sender: Sender) -> Picture | None:
        """The picture of one sender, however old."""
        known = self._known.get(sender)
        return known.picture if known else None

    def pictures(self) -> Mapping[Sender, Picture]:
        """All pictures; how old each one is, it says itself."""
        return {
            sender: known.picture
            for sender, known in self._known.items()
            if known.picture is not None
        }

    def forget(self, gone: Callable[[Sender], bool], now: float) -> None:
        """Drop senders that are `gone` and silent, and those that are silent for ten minutes.

        A sender that is gone and not silent may be one that our copy of the cluster lacks yet.
        """
        self._known = {
            sender: known
            for sender, known in self._known.items()
            if now - known.heard
            <= (SILENT_AFTER_SECONDS if gone(sender) else _FORGET_AFTER_SECONDS)
        }


def _renew(known: _Known, report: Report, sender: Sender, now: float) -> bool:
    follows = report.sequence == known.sequence + 1
    known.sequence, known.heard = report.sequence, now
    if report.kind == "Full":
        listed = {gpu.uuid for gpu in report.gpus}
        names = NodeNames(listed) if sender.kind == "NodeAgent" else known.names
        known.picture = picture_of(report, sender, now, names)
        return True
    if known.picture is None or not follows:
        # What we have may not be what has not changed: it ages until the whole picture comes.
        return False
    known.picture = replace(known.picture, heard=now, sampled=sampled_at(report, now))
    return True
