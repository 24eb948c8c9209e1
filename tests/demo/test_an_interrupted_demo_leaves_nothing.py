"""However and whenever the demo is ended: its cluster, its processes and its files go."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from demo.running import starting_demo
from devcluster.registry import records
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("sign", "options"),
    [
        pytest.param("", [], id="before there is a cluster"),
        pytest.param("cluster/logs/kube-apiserver.log", [], id="while the control plane starts"),
        pytest.param("cluster/installation-*/controller.log", ["--keep"],
                     id="while the operator starts in a cluster that is to be kept"),
    ],
)  # fmt: skip
def test_ctrl_c_ends_all_and_says_so(sign: str, options: list[str], tmp_path: Path) -> None:
    with starting_demo(tmp_path, *options) as demo:
        await_file(tmp_path, f"gpumem-demo-*/{sign}")
        demo.send_signal(signal.SIGINT)
        said, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    assert (demo.returncode, said) == (130, "")
    assert errors.splitlines()[-1] == "devcluster: ending the cluster"
    assert "Traceback" not in errors
    assert_nothing_is_left(tmp_path)


def test_the_cluster_of_a_killed_demo_ends_by_itself(tmp_path: Path) -> None:
    with starting_demo(tmp_path, "--keep") as demo:
        await_file(tmp_path, "gpumem-demo-*/cluster/logs/kube-apiserver.log")
        demo.kill()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.1)
    assert_nothing_is_left(tmp_path)


def test_a_reader_who_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    with starting_demo(tmp_path) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.readline()
        demo.stdout.close()
        errors = demo.stderr.read()
        demo.wait()
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
    assert_nothing_is_left(tmp_path)


def await_file(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"there is no {pattern}"
        time.sleep(0.01)


def assert_nothing_is_left(folder: Path) -> None:
    assert list(folder.rglob("*")) == []
    assert [record for record in records() if record.root.startswith(str(folder))] == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(folder) not in running
