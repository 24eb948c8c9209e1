"""Installed releases of frameworks, each in a folder of the cache.

    python tests/frameworks/releases.py newest|all     makes them, and says what it does

A folder is put on PYTHONPATH, as the packages of an image are found; nothing needs a GPU. Tests
download nothing themselves: what is not there is skipped with the reason that this command had.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from devcluster.gomodules import cache_folder

PINS = Path(__file__).with_name("pins.toml")
GIB = 2**30
LONGEST_SECONDS = {"newest": 600, "all": 7200}
"""For all that is asked for: a slow network must not keep the other tests waiting for an hour."""


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
    in_newest: bool = True

    @property
    def title(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def folder(self) -> Path:
        return cache_folder() / "frameworks" / self.title

    @property
    def _complete(self) -> Path:
        return self.folder / ".complete"

    @property
    def _missing(self) -> Path:
        return self.folder.with_name(f"{self.title}.missing")

    def installed(self) -> Path:
        """The folder with its packages. Raises NotInstalledError with the reason of last time."""
        if self._complete.exists():
            return self.folder
        if self._missing.exists():
            raise NotInstalledError(self._missing.read_text())
        raise NotInstalledError(
            f"{self.title} is not installed yet; next step: make test, or make test-frameworks"
        )

    def install(self, *, seconds: float) -> None:
        """Make the folder within so much time. Raises NotInstalledError, and keeps the reason."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _lock(self.folder.parent):
                if not self._complete.exists():
                    self._make(seconds)
        except NotInstalledError as reason:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._missing.write_text(str(reason))
            raise
        self._missing.unlink(missing_ok=True)

    def _make(self, seconds: float) -> None:
        self._check()
        self._download(seconds)
        for pattern in self.unused:
            for path in list(self.folder.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._complete.write_text("\n".join(self.requirements))

    def _check(self) -> None:
        oldest, newest = (tuple(map(int, text.split("."))) for text in self.python)
        if not oldest <= sys.version_info[:2] <= newest:
            raise NotInstalledError(
                f"{self.title} has wheels for Python {self.python[0]} to {self.python[1]}, and"
                f" this is {sys.version_info[0]}.{sys.version_info[1]}"
            )
        free = shutil.disk_usage(self.folder.parent).free
        if free < 2 * self.gib * GIB:
            raise NotInstalledError(
                f"{self.title} needs about {self.gib} GiB, twice that while it is installed, and"
                f" {free / GIB:.1f} GiB are free in {self.folder.parent}"
            )

    def _download(self, seconds: float) -> None:
        print(f"frameworks: installing {self.title}, about {self.gib} GiB ...", file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
        try:
            done = subprocess.run(
                [*pip, "--target", str(self.folder), *self.requirements],
                capture_output=True,
                text=True,
                timeout=max(seconds, 1),
            )
        except subprocess.TimeoutExpired as error:
            raise NotInstalledError(
                f"{self.title} was not installed within the {seconds:.0f} s that were left for it;"
                " next step: make test again, or make test-frameworks, which waits longer"
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
            row.get("newest", True),
        )
        for row in tomllib.loads(PINS.read_text())["release"]
    ]
    newest = {row.name: row for row in rows if row.in_newest}
    return rows if which == "all" else list(newest.values())


def main() -> int:
    which = sys.argv[1] if len(sys.argv) == 2 else ""
    if which not in ("newest", "all"):
        print("usage: python tests/frameworks/releases.py newest|all", file=sys.stderr)
        return 2
    end = time.monotonic() + LONGEST_SECONDS[which]
    for release in releases(which):
        try:
            release.install(seconds=end - time.monotonic())
        except NotInstalledError as reason:
            print(f"frameworks: {reason}; its tests are skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
