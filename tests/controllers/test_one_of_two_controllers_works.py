"""Two processes of the controller: one leads, the other is ready to."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from controllers.cluster_view import View
from controllers.stored import policy
from devcluster.installation import Installation
from devcluster.roleprocess import SOURCES
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster


def leaders(controllers: Installation) -> list[int]:
    """Indices of the replicas that say that they lead."""
    found = []
    for index, url in enumerate(controllers.health_urls("controller")):
        try:
            with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            continue
        if "\ngpumem_leader 1.0" in text:
            found.append(index)
    return found


def wait_for_leaders(controllers: Installation, wanted: list[list[int]]) -> list[int]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := leaders(controllers)) not in wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_both_are_ready_and_one_leads(controllers: Installation) -> None:
    wait_for_leaders(controllers, [[0], [1]])
    for url in controllers.health_urls("controller"):
        for path in ("healthz", "readyz"):
            with urllib.request.urlopen(f"{url}/{path}", timeout=5) as answer:
                assert answer.status == 200


def test_the_standby_takes_over_when_the_leader_is_told_to_end(
    controllers: Installation, view: View, namespace: str
) -> None:
    (leader,) = wait_for_leaders(controllers, [[0], [1]])
    pid = controllers.controller_pids[leader]
    os.kill(pid, signal.SIGTERM)
    wait_for_leaders(controllers, [[1 - leader]])
    view.create(policy(namespace=namespace))
    view.wait("gpumemorypolicy/training", ".status.observedGeneration", "1", namespace)
    view.until(lambda: pid not in controllers.controller_pids)
    controllers.start_controller()
    assert leaders(controllers) == [1 - leader]


def test_a_process_that_lost_its_lease_ends_with_an_error(
    controllers: Installation, view: View, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.touch()
    flags = {
        "role": "controller",
        "settings": settings,
        "namespace": "default",
        "lease": "contested",
        "seal-secret": "contested",
        "kubeconfig": controllers.cluster.kubeconfig,
        "bind": "127.0.0.1",
        "health-port": 0,
    }
    view.cluster.kubectl("create", "secret", "generic", "contested")
    command = [sys.executable, "-m", "gpumem_operator"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(
        [*command, *(f"--{name}={value}" for name, value in flags.items())],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            view.until(lambda: view.try_kubectl("get", "lease", "contested").returncode == 0)
            view.patch("lease/contested", {"spec": {"holderIdentity": "thief"}})
            _, log = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "thief took it" in log
    assert "Traceback" not in log
    view.cluster.kubectl("delete", "lease,secret", "contested")


def test_a_process_that_hangs_at_its_end_says_where_and_ends() -> None:
    program = """
import threading
from gpumem_operator.controllers.process import bound_the_end

def waits_for_ever():
    threading.Event().wait()

bound_the_end(0.1)
waits_for_ever()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "waits_for_ever" in done.stderr
