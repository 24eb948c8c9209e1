"""However a caller ends, its cluster's processes and folder go."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cluster_processes import (
    Processes,
    caller,
    keeper_and_components,
    printed_kubeconfig,
    write_script,
)
from devcluster import Cluster, ClusterError
from devcluster.registry import find_record, records, stop_cluster

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGINT, id="interrupted with Ctrl-C"),
        pytest.param(signal.SIGTERM, id="terminated"),
    ],
)
def test_a_cluster_ends_with_its_caller(number: signal.Signals, tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    with caller("-m", "devcluster", "start", root) as process:
        assert printed_kubeconfig(process).exists()
        running = keeper_and_components(find_record(root).pid)
        assert len(running) == 5

        process.send_signal(number)
        running.wait_until_gone()

    assert not root.exists()
    assert str(root) not in {record.root for record in records()}


def test_a_cluster_ends_with_a_caller_that_is_killed_while_it_starts(tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    news = tmp_path / "news"
    os.mkfifo(news)
    # An apiserver that says that it runs, and never becomes ready.
    stuck = write_script(tmp_path / "stuck", f"echo $PPID $$ > {news}", "exec sleep 600")
    program = (
        "import devcluster, pathlib;"
        f"stuck = pathlib.Path({str(stuck)!r});"
        f"devcluster.Cluster.start(pathlib.Path({str(root)!r}),"
        " binaries={'kube-apiserver': stuck})"
    )
    with caller("-c", program) as process:
        keeper, apiserver = map(int, news.read_text().split())
        running = Processes([keeper, apiserver])

        process.kill()
        running.wait_until_gone()

    assert not root.exists()


def test_the_components_of_a_killed_keeper_end_and_stop_removes_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    with caller("-m", "devcluster", "start", root) as process:
        printed_kubeconfig(process)
        record = find_record(root)
        running = keeper_and_components(record.pid)

        os.kill(record.pid, signal.SIGKILL)
        running.wait_until_gone()
        stop_cluster(record)

    assert not root.exists()
    assert record not in list(records())


def test_a_caller_is_told_that_its_keeper_is_gone_and_cleans_up(tmp_path: Path) -> None:
    with Cluster.start(tmp_path / "cluster") as cluster:
        record = find_record(cluster.root)
        os.kill(record.pid, signal.SIGKILL)

        with pytest.raises(ClusterError, match=r"The keeper of .* is gone"):
            cluster.check()

    assert not cluster.root.exists()
    assert record not in list(records())


def test_a_kept_cluster_outlives_its_caller_until_it_is_stopped(tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    with caller("-m", "devcluster", "start", "--keep", root) as start:
        kubeconfig = printed_kubeconfig(start)
        assert start.wait() == 0
    record = find_record(root)
    running = keeper_and_components(record.pid)
    assert (record.kept, record.running, len(running)) == (True, True, 5)
    with caller("-m", "devcluster", "kubeconfig", root) as asked:
        assert printed_kubeconfig(asked) == kubeconfig

    with caller("-m", "devcluster", "stop", root) as stop:
        assert stop.wait() == 0

    running.wait_until_gone()
    assert not root.exists()


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")

    with pytest.raises(ClusterError, match="is not empty"):
        Cluster.start(tmp_path)

    assert (tmp_path / "thesis.txt").exists()
