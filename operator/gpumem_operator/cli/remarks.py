"""What is said on stderr beside the result: one line each, and nothing twice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Remark:
    """A warning, the refusal of one pod, or what is worth knowing and no mistake."""

    text: str
    about: str | None = None
    """NAMESPACE/NAME of the pod; None for what concerns the files as a whole."""
    level: Literal["note", "warning", "error"] = "warning"


def lines(remarks: Iterable[Remark]) -> Iterator[str]:
    """The lines, in the order in which each was first said.

    What is said in the same words about several pods is said once, with their number: the twelfth
    repetition hides what stands between.
    """
    abouts: dict[tuple[str, str], list[str | None]] = {}
    for remark in remarks:
        said = abouts.setdefault((remark.level, remark.text), [])
        if remark.about not in said:
            said.append(remark.about)
    for (level, text), about in abouts.items():
        yield ": ".join((level, *_subject(about), text))


def _subject(about: list[str | None]) -> tuple[str, ...]:
    if len(about) > 1:
        return (f"{len(about)} pods (first {about[0]})",)
    return () if about[0] is None else (about[0],)
