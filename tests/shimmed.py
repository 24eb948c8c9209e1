"""Real interpreters that start with the shim, as the containers of a GPU pod do."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patience import PATIENCE_SECONDS

SIDECAR = Path(__file__).parents[1] / "sidecar"
OLDEST = (3, 8, 0)


def install(target: Path) -> subprocess.CompletedProcess[str]:
    """What the init container does."""
    return subprocess.run(
        [sys.executable, "-m", "gpumem_shim", "install", str(target)],
        env=os.environ | {"PYTHONPATH": str(SIDECAR)},
        capture_output=True,
        text=True,
    )


@dataclass
class Shimmed:
    """One GPU container: an interpreter, its PYTHONPATH behind the shim, and its run volume."""

    folder: Path
    python: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shim = self.folder / "shim"
        self.run_folder = self.folder / "run"
        self.library = self.folder / "library"
        for folder in (self.run_folder, self.library):
            folder.mkdir()
        result = install(self.shim)
        assert result.returncode == 0, result.stderr

    def module(self, name: str, source: str, *, folder: Path | None = None) -> Path:
        """Put a module on the container's own PYTHONPATH."""
        path = (folder or self.library) / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def start(
        self, code: str, *flags: str, path: str | None = None, without: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; `without` names capabilities that it lacks."""
        drop = ["setpriv", "--bounding-set", without] if without and os.geteuid() == 0 else []
        return subprocess.run(
            [*drop, self.python, "-B", *flags, "-c", code],
            env=self.variables(path or f"{self.shim}:{self.library}"),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def variables(self, path: str) -> Mapping[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {
            **kept,
            "PYTHONPATH": path,
            "GPUMEM_CONTAINER": "main",
            "GPUMEM_RUN_PATH": str(self.run_folder),
            "GPUMEM_LIMIT_BYTES": str(8 * 2**30),
            **self.environment,
        }

    def states(self) -> list[Path]:
        return sorted((self.run_folder / "main").glob("*.json"))

    def everything_in_the_run_folder(self) -> list[Path]:
        return sorted(self.run_folder.rglob("*"))


@functools.cache
def interpreters() -> dict[str, str]:
    """Pythons of this machine that the shim promises to run in, by version; this one for sure."""
    found = {_version_of(sys.executable): sys.executable}
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [str(path) for path in sorted(installed.glob("3.*/bin/python"))]
    names = [f"python3.{n}{suffix}" for n in range(8, 16) for suffix in ("", "t")]
    candidates += [path for name in names if (path := shutil.which(name))]
    for candidate in candidates:
        version = _version_of(candidate)
        if version >= OLDEST:
            found.setdefault(version, candidate)
    rows = sorted(found.items())
    return {f"{major}.{minor}{'t' * free}": path for (major, minor, free), path in rows}


def _version_of(python: str) -> tuple[int, int, int]:
    """Major, minor, and whether it is built without the global lock; zeros of what is no Python."""
    ask = (
        "import sys, sysconfig\n"
        "print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    )
    result = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if result.returncode != 0:
        return 0, 0, 0
    major, minor, free = map(int, result.stdout.split())
    return major, minor, free
