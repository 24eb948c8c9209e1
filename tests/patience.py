"""How long tests wait for what is to happen: on a machine at work, so long that it never will."""

from __future__ import annotations

from typing import Final

PATIENCE_SECONDS: Final = 180.0
WAIT: Final = f"--timeout={PATIENCE_SECONDS:.0f}s"
"""The same for `kubectl wait`."""
