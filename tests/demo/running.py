"""The demo as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DEMO_SECONDS = 300.0


def run_demo(*options: str) -> str:
    """What the demo tells, from its start to its end."""
    result = subprocess.run(
        [sys.executable, "-m", "devcluster.demo", *options],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@contextmanager
def starting_demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A demo whose files are in `folder`; killed at the end, where it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "devcluster.demo", *options],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        try:
            yield demo
        finally:
            demo.kill()


def devcluster(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "devcluster", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
