"""Text of others made fit for people's terminals.

A workload can write whatever it likes into what ends up in events, conditions and tables: escape
sequences that move the cursor, line breaks that forge a line, marks that turn the direction of
writing. Two ways out, for two places: where such text comes in, its length is bounded and stays
what it was, so one letter stands for one; where it is printed, nothing is lost.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

LONGEST: Final = 253
"""Letters; the longest name that Kubernetes has."""


def printable(text: str) -> str:
    """The text with a question mark for each letter that is not printed as itself."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def one_line(text: str) -> str:
    """The text with everything that a terminal would not print in place of it escaped."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


Text = Annotated[str, Field(max_length=LONGEST), AfterValidator(printable)]
"""Of a sender: bounded, and printable from here on."""
