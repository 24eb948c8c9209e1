from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulated_driver.node import Node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver")


@pytest.fixture
def shared_node() -> Iterator[Node]:
    """One whose state other users may read: pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Node(Path(folder) / "driver")
