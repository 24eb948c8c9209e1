"""Containers with the shim, and senders of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from sending import Sender, picture
from shimmed import Shimmed


@pytest.fixture
def container(tmp_path: Path) -> Shimmed:
    """A container with this Python, and a module that is called torch."""
    made = Shimmed(tmp_path)
    made.module("torch", '__version__ = "2.9.0"\n')
    return made


@pytest.fixture
def sender() -> Sender:
    """Whose first whole report was taken in."""
    made = Sender()
    assert made.message() is None, "there is nothing to say yet"
    first = made.message(picture())
    assert (first["kind"], first["sequence"], first["senderStart"]) == ("Full", 1, "start-1")
    made.accepted()
    return made
