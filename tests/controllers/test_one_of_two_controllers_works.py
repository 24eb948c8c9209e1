"""Two processes of the controller: one leads, the other is ready to."""

import os
import signal
import time
import urllib.request

import pytest

from controllers.cluster_view import View
from controllers.stored import policy
from devcluster.installation import Installation

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
    deadline = time.monotonic() + 30
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


def test_the_standby_takes_over_within_seconds_when_the_leader_is_told_to_end(
    controllers: Installation, view: View, namespace: str
) -> None:
    (leader,) = wait_for_leaders(controllers, [[0], [1]])
    os.kill(controllers.controller_pids[leader], signal.SIGTERM)
    began = time.monotonic()
    wait_for_leaders(controllers, [[1 - leader]])
    assert time.monotonic() - began < 6
    view.create(policy(namespace=namespace))
    view.wait("gpumemorypolicy/training", ".status.observedGeneration", "1", namespace)
    controllers.start_controller()
    assert leaders(controllers) == [1 - leader]
