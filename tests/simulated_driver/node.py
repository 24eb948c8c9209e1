"""A node with a simulated driver, and who looks at it from where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from devcluster.sandbox import why_not
from devcluster.simulated_driver import (
    MIB,
    Allocation,
    Driver,
    create_state,
    environment,
    numbered_device,
    write_driver,
)
from patience import PATIENCE_SECONDS

HERE = Path(__file__).parent
RESERVED = 615 * MIB
TOTAL = 143771 * MIB
NO_INSTANCE = 0xFFFFFFFF


needs_namespaces = pytest.mark.skipif(bool(why_not()), reason=why_not())


class Node:
    """The state folder of one simulated node."""

    def __init__(self, folder: Path, driver: Driver | None = None) -> None:
        self.folder = create_state(folder, driver or Driver((numbered_device(0),)))

    def use(self, driver: Driver) -> None:
        write_driver(self.folder, driver)

    def hold(self, mib: int, gpu: str = "0", **options: Any) -> Allocation:
        return Allocation(self.folder, gpu, mib, **options)

    def run(
        self, code: str, *arguments: str, prefix: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with pynvml on this node's driver."""
        return subprocess.run(
            [*prefix, sys.executable, "-c", code, *arguments],
            env=environment(self.folder) | {"PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def observe(self, prefix: Sequence[str] = ()) -> Any:
        done = self.run("import observer; observer.main()", prefix=prefix)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def card(self, prefix: Sequence[str] = ()) -> Any:
        """What is seen of card 0."""
        return self.observe(prefix)["cards"][0]


def process(pid: int, mib: int) -> list[int]:
    """One entry of a process list, on a card without MIG."""
    return [pid, mib * MIB, NO_INSTANCE, NO_INSTANCE]
