"""Programs of this machine for another one, each with the libraries that it needs.

The C library stays the other machine's own: it has to be as new as this one's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.node.requirements import cni_folder, find_program

PROGRAMS = ("runc", "ip", "nft")
PLUGINS = ("bridge", "host-local", "loopback")
BUNDLE_PACKAGES = {"patchelf": "patchelf", "xz": "xz-utils"}
C_LIBRARY = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv))\.so")
LIBRARY_LINE = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)


def copy_programs(target: Path) -> None:
    """Write the folders `bin`, `lib` and `cni` below `target`.

    A program finds its libraries beside itself and needs no variable for it: runc starts itself
    again with an empty environment. Raises ClusterError where something is missing here."""
    for name in ("bin", "lib", "cni"):
        (target / name).mkdir(parents=True)
    for name in PROGRAMS:
        _copy_program(_found(name), target)
    plugins = cni_folder()
    if plugins is None:
        raise ClusterError("There are no network plugins here: install containernetworking-plugins")
    for name in PLUGINS:
        shutil.copy2(plugins / name, target / "cni" / name)


def _found(name: str) -> Path:
    path = find_program(name)
    if path is None:
        raise ClusterError(f"{name} is missing here, and belongs to the archive")
    return Path(path).resolve()


def _copy_program(program: Path, target: Path) -> None:
    for name, path in libraries_of(program).items():
        library = target / "lib" / name
        if not library.exists():
            shutil.copy2(path.resolve(), library)
            _look_beside(library, "$ORIGIN")
    copied = target / "bin" / program.name
    shutil.copy2(program, copied)
    _look_beside(copied, "$ORIGIN/../lib")


def libraries_of(program: Path) -> dict[str, Path]:
    """The libraries that the loader would take, by the name that it looks for."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    found = LIBRARY_LINE.findall(done.stdout)
    return {name: Path(path) for name, path in found if not C_LIBRARY.match(name)}


def _look_beside(file: Path, where: str) -> None:
    patchelf = _found("patchelf")
    done = subprocess.run([patchelf, "--set-rpath", where, file], capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"`patchelf` failed for {file.name}: {done.stderr.strip()}")
