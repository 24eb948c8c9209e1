"""Chooses where each program comes from: given by the user, built before, installed, or built now.

A name proves nothing (a distribution's `kubectl` may be years old, or a wrapper), so a program
from elsewhere is taken only after it printed a version that fits.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.gobuild import build, built_path
from devcluster.gomodules import NODE_PROGRAMS, PROGRAMS, SERVERS, Program, check_wanted
from devcluster.progress import say


@dataclass(frozen=True)
class Candidate:
    """A program found outside our cache, and what it says about itself."""

    path: Path
    origin: str
    version: tuple[int, int] | None
    """(major, minor), or None when it did not print one."""


def find_binaries(*, verbose: bool = False) -> dict[str, Path]:
    """The path of every program, by name; builds what is nowhere to be had.

    Raises ClusterError where GPUMEM_KUBERNETES is wrong or a build fails."""
    check_wanted()
    chosen = choose_binaries()
    ours = [program for program in PROGRAMS if chosen[program.name] is None]
    nothing_new = len(ours) == len(PROGRAMS) and all(built_path(one).exists() for one in ours)
    build(ours)
    if verbose:
        lines = (_origin_line(program, chosen[program.name]) for program in PROGRAMS)
        for line in [_usual_line()] if nothing_new else lines:
            say(line)
    return {
        program.name: candidate.path if candidate else built_path(program)
        for program in PROGRAMS
        for candidate in [chosen[program.name]]
    }


def find_node_binaries() -> dict[str, Path]:
    """The path of every program that a node needs besides; builds those that the cache lacks.

    Installed ones are not taken: the parts of containerd have to be of one version, and a kubelet
    must not be newer than its apiserver. Raises ClusterError as `find_binaries` does.
    """
    check_wanted()
    build(NODE_PROGRAMS)
    return {program.name: built_path(program) for program in NODE_PROGRAMS}


def choose_binaries() -> dict[str, Candidate | None]:
    """The program from elsewhere to use, by name; None stands for the one in our cache.

    The order is: KUBEBUILDER_ASSETS, because someone set it on purpose; our cache, because it
    holds exactly the pinned versions; PATH, because it saves a build; a build.
    """
    chosen = {program.name: _choose(program) for program in PROGRAMS}
    _reject_mixed_servers(chosen)
    return chosen


def _usual_line() -> str:
    """All programs in one line, for the usual case that each was built before."""
    families = dict.fromkeys(program.module for program in PROGRAMS)
    return ", ".join(f"{one.title} {_dotted(one.version)}" for one in families) + " from the cache"


def _origin_line(program: Program, candidate: Candidate | None) -> str:
    if candidate is None:
        version = _dotted(program.module.version)
        return f"{program.name} {version} from the cache: {built_path(program)}"
    version = _dotted(candidate.version or ())
    return f"{program.name} {version} from {candidate.origin}: {candidate.path}"


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _choose(program: Program) -> Candidate | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        given = _fitting(program, Path(assets) / program.name, "KUBEBUILDER_ASSETS")
        if given is not None:
            return given
    on_path = shutil.which(program.name)
    if built_path(program).exists() or on_path is None:
        return None
    return _fitting(program, Path(on_path), "PATH")


def _fitting(program: Program, path: Path, origin: str) -> Candidate | None:
    if not path.exists():
        return None
    version = _printed_version(program, path)
    if version is not None and _accepts(program, version):
        return Candidate(path, origin, version)
    said = _dotted(version) if version else "no version"
    say(f"{program.name} from {origin} is not used: it reports {said} ({path})")
    return None


def _accepts(program: Program, version: tuple[int, int]) -> bool:
    return any(
        version[0] == major and minor in (None, version[1]) for major, minor in program.accepted
    )


def _printed_version(program: Program, path: Path) -> tuple[int, int] | None:
    """The (major, minor) version that a program prints; None when it fails or prints none."""
    try:
        result = subprocess.run(
            [path, *program.version_arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bv?(\d+)\.(\d+)\.\d+", result.stdout)
    if result.returncode != 0 or found is None:
        return None
    return int(found[1]), int(found[2])


def _reject_mixed_servers(chosen: dict[str, Candidate | None]) -> None:
    """Give the three servers one minor version, by falling back to our own builds.

    Kubernetes does not support a controller-manager or scheduler newer than its apiserver.
    """
    servers = [program for program in PROGRAMS if program.name in SERVERS]
    versions = {_version_to_run(program, chosen) for program in servers}
    if len(versions) == 1:
        return
    for program in servers:
        candidate = chosen[program.name]
        if candidate is not None and candidate.version != program.module.version[:2]:
            pinned = _dotted(program.module.version[:2])
            say(f"{program.name} from {candidate.origin} is not used: the others are {pinned}")
            chosen[program.name] = None


def _version_to_run(
    program: Program, chosen: Mapping[str, Candidate | None]
) -> tuple[int, int] | None:
    candidate = chosen[program.name]
    return candidate.version if candidate else program.module.version[:2]
