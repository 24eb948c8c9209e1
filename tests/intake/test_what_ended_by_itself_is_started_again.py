"""Where no Deployment keeps the operator's processes, the one who holds them does."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from devcluster.installation import Installation
from devcluster.leader_service import LeaderPod
from devcluster.revival import Revival
from intake.senders import Cast
from patience import eventually

pytestmark = pytest.mark.cluster


def leader_pod(operator: Installation) -> dict[str, Any]:
    what = ["get", "pod", "leader", "-n", operator.namespace, "-o", "json"]
    found: dict[str, Any] = json.loads(operator.cluster.kubectl(*what).stdout)
    return found


def is_ready(operator: Installation) -> bool:
    [condition] = leader_pod(operator)["status"]["conditions"]
    return bool(condition["status"] == "True")


def test_a_controller_that_ended_by_itself_is_started_again_and_its_pod_says_so(
    cast: Cast, operator: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    revival = Revival(operator, LeaderPod(operator.cluster, operator.namespace))
    before = operator.controller_pids
    revival.look()
    assert is_ready(operator)

    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not operator.controller_pids)
    revival.look()

    assert not is_ready(operator), "nobody leads, and the pod does not hide it"

    def back() -> bool:
        revival.look()
        return len(operator.controller_pids) == len(before) and is_ready(operator)

    eventually(back)
    assert not set(before) & set(operator.controller_pids)
    [status] = leader_pod(operator)["status"]["containerStatuses"]
    assert status["ready"]
    assert status["restartCount"] >= 1
    assert "controller ended with status -9." in capsys.readouterr().err
    cast.leader_port()


def test_what_was_stopped_on_purpose_stays_so(operator: Installation) -> None:
    operator.stop_controller()
    try:
        assert operator.revive() == {}
        assert operator.controller_pids == []
    finally:
        operator.start_controller()
