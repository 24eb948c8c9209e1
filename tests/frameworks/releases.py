"""Installed releases of frameworks, each in a folder of the cache that is made on first use.

    python tests/frameworks/releases.py newest|all     makes them, and says what it does

A folder is put on PYTHONPATH, as the packages of an image are found; nothing needs a GPU.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from devcluster.gomodules import cache_folder

PINS = Path(__file__).with_name("pins.toml")
GIB = 2**30
INSTALL_SECONDS = 1800


class NotInstalledError(Exception):
    """The release can not be had on this machine; the text says why and what to do."""


@dataclass(frozen=True)
class Release:
    """One row of the pins."""

    name: str
    version: str
    gib: float
    """What the folder takes, about."""
    python: tuple[str, str]
    """Oldest and newest Python that it has wheels for."""
    requirements: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def folder(self) -> Path:
        return cache_folder() / "frameworks" / self.title

    def install(self) -> Path:
        """The folder with its packages. Raises NotInstalledError."""
        done = self.folder / ".complete"
        if done.exists():
            return self.folder
        self._check()
        with _lock(self.folder.parent):
            if not done.exists():
                self._download()
                for pattern in self.unused:
                    for path in list(self.folder.glob(pattern)):
                        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                done.write_text("\n".join(self.requirements))
        return self.folder

    def _check(self) -> None:
        oldest, newest = (tuple(map(int, text.split("."))) for text in self.python)
        if not oldest <= sys.version_info[:2] <= newest:
            raise NotInstalledError(
                f"{self.title} has wheels for Python {self.python[0]} to {self.python[1]}, and"
                f" this is {sys.version_info[0]}.{sys.version_info[1]}"
            )
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder.parent).free
        if free < 2 * self.gib * GIB:
            raise NotInstalledError(
                f"{self.title} needs about {self.gib} GiB, twice that while it is installed, and"
                f" {free / GIB:.1f} GiB are free in {self.folder.parent}"
            )

    def _download(self) -> None:
        print(f"frameworks: installing {self.title}, about {self.gib} GiB ...", file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
        try:
            done = subprocess.run(
                [*pip, "--target", str(self.folder), *self.requirements],
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise NotInstalledError(
                f"{self.title} was not installed within {INSTALL_SECONDS} s"
            ) from error
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise NotInstalledError(f"{self.title} could not be installed: {lines[-1]}")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def releases(which: str) -> list[Release]:
    """`all`, or the `newest` of each framework."""
    rows = [
        Release(
            row["name"],
            row["version"],
            row["gib"],
            (row["python"][0], row["python"][1]),
            tuple(row["requirements"]),
            tuple(row["unused"]),
        )
        for row in tomllib.loads(PINS.read_text())["release"]
    ]
    return rows if which == "all" else list({row.name: row for row in rows}.values())


def main() -> int:
    which = sys.argv[1] if len(sys.argv) == 2 else ""
    if which not in ("newest", "all"):
        print("usage: python tests/frameworks/releases.py newest|all", file=sys.stderr)
        return 2
    for release in releases(which):
        try:
            release.install()
        except NotInstalledError as reason:
            print(f"frameworks: {reason}; its tests are skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
