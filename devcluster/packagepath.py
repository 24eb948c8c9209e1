"""Where child processes find this package, and what their caller found besides."""

from __future__ import annotations

import os
from pathlib import Path


def python_path() -> str:
    """For a child's PYTHONPATH. The caller's own stays: it may hold the packages that we need."""
    ours = str(Path(__file__).parent.parent)
    given = os.environ.get("PYTHONPATH")
    return f"{ours}{os.pathsep}{given}" if given else ours
