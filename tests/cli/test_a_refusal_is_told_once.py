"""What `kubectl gpumem why deploy/x` makes of the Events of a controller whose pods are refused."""

from datetime import UTC, datetime
from typing import Any

from gpumem_operator.cli.event_lines import refusals

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)


def failed(pod: str = "web-7d9f8-4xkzp", *, minute: int = 0, left: int = 2, **more: Any) -> Any:
    message = (
        'Error creating: admission webhook "rooms.gpumemory.dev" denied the request: GPU pod'
        f" ml/{pod} is refused: tenant beta: the pod asks for 8Gi, and {left}Gi of 6Gi are left"
    )
    time = f"2026-01-01T12:0{minute}:00Z"
    return {"reason": "FailedCreate", "message": message, "lastTimestamp": time, **more}


def test_the_same_of_pods_with_other_generated_names_is_told_once_with_the_number() -> None:
    names = ("web-7d9f8-4xkzp", "web-7d9f8-b2c4d", "web-7d9f8-zz99x")
    [found] = refusals([failed(name, minute=minute) for minute, name in enumerate(names)])
    assert found.times == 3
    assert found.line(NOW).startswith("refused 3 times, last 3 min ago: Error creating: ")
    assert "GPU pod ml/web-7d9f8-* is refused: tenant beta" in found.message


def test_an_event_that_was_counted_by_the_api_server_counts_as_often() -> None:
    [found] = refusals([failed(count=4), failed(series={"count": 6})])
    assert found.times == 10


def test_one_refusal_names_its_pod() -> None:
    [found] = refusals([failed()])
    assert found.line(NOW) == f"refused: {found.message}"
    assert "web-7d9f8-4xkzp" in found.message


def test_other_figures_are_another_refusal_and_the_latest_comes_last() -> None:
    found = refusals([failed(left=0, minute=3), failed(left=2), failed(left=2, minute=1)])
    assert [one.times for one in found] == [2, 1]
    assert "0Gi of 6Gi" in found[-1].message


def test_what_others_refuse_is_no_word_of_ours() -> None:
    other = {"reason": "FailedCreate", "message": "exceeded quota: compute"}
    assert refusals([other, {"reason": "SuccessfulCreate", "message": "gpumemory.dev"}]) == []
