"""Containers with the shim."""

from __future__ import annotations

from pathlib import Path

import pytest

from shimmed import Shimmed


@pytest.fixture
def container(tmp_path: Path) -> Shimmed:
    """A container with this Python, and a module that is called torch."""
    made = Shimmed(tmp_path)
    made.module("torch", '__version__ = "2.9.0"\n')
    return made
