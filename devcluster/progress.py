"""Progress lines on standard error, so that standard output stays for results."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    print(f"devcluster: {line}", file=sys.stderr, flush=True)
