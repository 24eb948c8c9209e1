"""A container with the shim and one real framework, with simulated cards or none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frameworks.releases import Release
from gpu_container import simulated_cards
from shimmed import Shimmed

LONGEST_SECONDS = 300


class Installed(Shimmed):
    """`run` returns the JSON that a program printed last."""

    def __init__(self, folder: Path, release: Release, *, cards: int = 0) -> None:
        super().__init__(folder)
        self.release = release
        self.beside: tuple[Path, ...] = ()
        """Folders with what the release needs and does not have."""
        self.environment = {"GPUMEM_CONTEXT_RESERVE_BYTES": str(2**30)}
        if cards:
            self.environment |= simulated_cards(folder, cards)

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.release.version.split(".")[:2]
        return int(major), int(minor)

    def variables(self, path: str) -> Mapping[str, str]:
        folders = (path, self.release.folder, *self.beside)
        return super().variables(":".join(map(str, folders)))

    def process(self, program: str, *, shim: bool = True) -> subprocess.CompletedProcess[str]:
        path = f"{self.shim}:{self.library}" if shim else str(self.library)
        return subprocess.run(
            # Python's own cache of compiled files makes the second import four times as fast.
            [self.python, "-W", "ignore", "-c", program],
            env=self.variables(path),
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
        )

    def run(self, program: str, *, shim: bool = True) -> Any:
        done = self.process(program, shim=shim)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    def told(self) -> Any:
        """What the one process told about the framework."""
        [path] = self.states()
        return json.loads(path.read_text())["frameworks"][0]
