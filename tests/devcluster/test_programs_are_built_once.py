"""What the build leaves in the cache, seen with a stand-in for the go command."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster_processes import write_script
from devcluster.failure import ClusterError
from devcluster.gobuild import build, built_path
from devcluster.gomodules import PROGRAMS

ETCD = next(program for program in PROGRAMS if program.name == "etcd")


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one line for each build that the stand-in for go has made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    write_script(
        tmp_path / "path" / "go",
        'if [ "$1" = version ]; then echo go version go1.99.0 linux/amd64; exit; fi',
        'echo built >> "$BUILDS"',
        'while [ "$1" != -o ]; do shift; done',
        'echo program > "$2"',
    )
    return tmp_path / "builds"


def test_a_program_is_built_by_the_first_caller_only(builds: Path) -> None:
    build([ETCD])
    build([ETCD])

    assert builds.read_text() == "built\n"
    assert built_path(ETCD).read_text() == "program\n"


def test_two_callers_at_once_build_a_program_once(builds: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, [[ETCD], [ETCD]]))

    assert builds.read_text() == "built\n"


@pytest.mark.usefixtures("builds")
def test_a_failed_build_leaves_nothing_and_tells_what_go_said(tmp_path: Path) -> None:
    write_script(
        tmp_path / "path" / "go",
        'if [ "$1" = version ]; then echo go version go1.99.0 linux/amd64; exit; fi',
        'while [ "$1" != -o ]; do shift; done',
        'echo half > "$2"',
        "echo no such host >&2",
        "exit 1",
    )

    with pytest.raises(ClusterError, match=r"etcd could not be built(?s:.*)no such host"):
        build([ETCD])

    assert list(built_path(ETCD).parent.iterdir()) == []
