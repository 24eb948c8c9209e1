"""The locked Python packages, unpacked for each version of Python that the other machine may have.

Nothing is installed there: a folder on PYTHONPATH will do, also beside a Python with others.
"""

from __future__ import annotations

import platform
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.node.images import REPOSITORY

PYTHONS = ("3.11", "3.12")
TEST_PACKAGES = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "jsonschema")
"""What tests on a node need; what checks the sources stays here."""
LIBRARY_LEVELS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def unpack_packages(target: Path, versions: Sequence[str] = PYTHONS) -> None:
    """Write a folder of packages for each of these versions of Python below `target`."""
    target.mkdir()
    lock = target / "packages.lock"
    lock.write_text(needed_packages())
    for version in versions:
        _unpack(version, lock, target / version)


def needed_packages() -> str:
    """The part of requirements.lock that operator, sidecar and the tests on a node need."""
    locked = runpy.run_path(str(REPOSITORY / "scripts" / "locked.py"))
    direct = set(TEST_PACKAGES)
    for image in ("operator", "sidecar"):
        direct |= locked["direct_dependencies"](image)
    needed: str = locked["needed_blocks"](direct, (REPOSITORY / "requirements.lock").read_text())
    return needed


def _unpack(version: str, lock: Path, target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    only = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile"]
    abi = f"cp{version.replace('.', '')}"
    for_whom = [f"--python-version={version}", "--implementation=cp"]
    for_whom += [f"--abi={name}" for name in (abi, "abi3", "none")]
    machine = platform.machine()
    for_whom += [f"--platform={level}_{machine}" for level in LIBRARY_LEVELS]
    command = [*pip, *only, *for_whom, f"--target={target}", f"--requirement={lock}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(
            f"The packages for Python {version} could not be had: pip ended with status"
            f" {done.returncode}:\n{done.stderr.strip()[-2000:]}"
        )
