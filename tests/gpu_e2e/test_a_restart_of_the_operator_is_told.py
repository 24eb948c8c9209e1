"""Which of the operator's containers were started again, and whether its Services answer."""

from __future__ import annotations

from typing import Any

from gpu_e2e.operator_pods import of_pods, restarted, started_again, unanswered


def pod(name: str, *, restarts: int) -> dict[str, Any]:
    end = {"terminated": {"reason": "Error", "exitCode": 137}} if restarts else {}
    one = {"name": "controller", "restartCount": restarts, "lastState": end}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [one]}}


def test_a_container_that_was_started_again_is_told_with_how_it_ended() -> None:
    before = of_pods([pod("controller-1", restarts=1), pod("controller-2", restarts=0)])
    now = of_pods([pod("controller-1", restarts=2), pod("controller-2", restarts=0)])

    assert started_again(before, now) == (
        "controller of controller-1: 1 time (Error, exit code 137)"
    )
    assert started_again(now, now) == ""


def test_logs_of_the_run_before_are_kept_of_those_that_have_one() -> None:
    found = of_pods([pod("controller-1", restarts=2), pod("controller-2", restarts=0)])

    assert [one.pod for one in restarted(found)] == ["controller-1"]


def test_a_pod_that_no_kubelet_has_told_of_has_no_containers_yet() -> None:
    assert of_pods([{"metadata": {"name": "new"}, "status": {"phase": "Pending"}}]) == ()


def test_a_service_answers_when_one_pod_behind_it_is_ready() -> None:
    def part(service: str, *ready: bool) -> dict[str, Any]:
        points = [{"conditions": {"ready": one}} for one in ready]
        labels = {"kubernetes.io/service-name": service}
        return {"metadata": {"labels": labels}, "endpoints": points or None}

    slices = [part("webhook", False, True), part("report", False), part("metrics")]

    assert unanswered(slices) == {"report", "metrics"}
