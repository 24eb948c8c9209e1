"""What is wrong with something that a person wrote, and where."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Violation:
    """One fault: the path of the field as the author would write it, and a sentence."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
