"""What a node needs of this machine, and what to install where it is missing.

Nothing is installed unasked: set GPUMEM_INSTALL_PACKAGES=1 (for CI) to have it done.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.node.cgroups import hierarchies
from devcluster.node.pause import pause_path
from devcluster.progress import say
from devcluster.simulated_driver.build import find_compiler

INSTALL_VARIABLE = "GPUMEM_INSTALL_PACKAGES"
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
"""Administrators' programs are not on every root's PATH."""
NODE_PACKAGES = {
    "runc": "runc",
    "ip": "iproute2",
    "nft": "nftables",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
"""The package of Debian and Ubuntu that brings each program."""


def search_path() -> str:
    """PATH with the folders of administrators' programs behind it."""
    return os.pathsep.join([os.environ.get("PATH", ""), SYSTEM_PATH])


def find_program(name: str) -> str | None:
    return shutil.which(name, path=search_path())


def cni_folder() -> Path | None:
    """Where the network plugins are: in CNI_PATH or whichever of the usual places."""
    given = [Path(folder) for folder in os.environ.get("CNI_PATH", "").split(os.pathsep) if folder]
    folders = [*given, *CNI_FOLDERS]
    return next((folder for folder in folders if (folder / "bridge").exists()), None)


def missing_packages() -> list[str]:
    """Packages to install before a node can start."""
    missing = missing_programs(NODE_PACKAGES)
    if cni_folder() is None:
        missing.append("containernetworking-plugins")
    if not pause_path().exists() and not _has_compiler():
        missing += ["gcc", "libc6-dev"]
    return sorted(missing)


def missing_programs(packages: Mapping[str, str]) -> list[str]:
    """The packages of those programs that are not there."""
    return sorted({package for name, package in packages.items() if find_program(name) is None})


def _has_compiler() -> bool:
    try:
        return bool(find_compiler())
    except ClusterError:
        return False


def why_not() -> str | None:
    """Why no node can run here, with what to do about it; None where one can.

    Installs what is missing where GPUMEM_INSTALL_PACKAGES=1 allows it.
    """
    if os.geteuid() != 0:
        return "a node needs root: namespaces, mounts and cgroups are made"
    if not hierarchies():
        return "a node needs cgroups that it can write below /sys/fs/cgroup, and there are none"
    return why_not_packages(missing_packages())


def why_not_packages(missing: Sequence[str]) -> str | None:
    """A sentence about packages that are missing; installs them instead where that is allowed."""
    if not missing:
        return None
    if os.environ.get(INSTALL_VARIABLE) == "1":
        return _install(missing)
    return (
        f"missing here: {', '.join(missing)}. Install with `apt-get install {' '.join(missing)}`,"
        f" or set {INSTALL_VARIABLE}=1 to have that done"
    )


def _install(packages: Sequence[str]) -> str | None:
    """Install packages; why that failed, else None."""
    say(f"{INSTALL_VARIABLE}=1: installing {', '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    for command in (["apt-get", "update"], install):
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        except FileNotFoundError:
            return f"{', '.join(packages)} can not be installed here: there is no apt-get"
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["nothing"]
            return (
                f"{', '.join(packages)} could not be installed: `{' '.join(command)}` ended with"
                f" status {done.returncode} and said: {said[-1]}"
            )
    return None
