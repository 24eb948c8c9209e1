"""Use in the statuses of policies and tenants: known, unknown with a reason, and seldom written."""

from typing import Any

import pytest

from controllers.stored import policies, policy, tenant, tenant_of
from gpumem_operator.admission.policy_status import (
    PolicyPod,
    PolicySurroundings,
    policy_status,
)
from gpumem_operator.api.measure import Measure
from gpumem_operator.api.quantity import GIB
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.tenant_status import tenant_status

NOW = "2026-03-01T12:00:00Z"
(TRAINING,) = policies(policy(limits={"default": "8Gi"}))


def known(used: int, enforcer: str = "none") -> Measure:
    return Measure(used, None, True, enforcer)


def unknown(reason: str) -> Measure:
    return Measure(None, reason, True, "unknown")


WAITS = Measure(0, None, False, "unknown")


def status(*measures: Measure, current: dict[str, Any] | None = None) -> dict[str, Any]:
    pods = tuple(PolicyPod({}, True, "training", "", 8 * GIB, one) for one in measures)
    return policy_status(
        TRAINING, PolicySurroundings((TRAINING,), pods), current=current or {}, now=NOW
    )


def measurement(*measures: Measure) -> tuple[str, str, str]:
    found = status(*measures)["conditions"]
    (one,) = [entry for entry in found if entry["type"] == "MeasurementUnavailable"]
    return one["status"], one["reason"], one["message"]


def test_the_sum_is_of_what_is_known_and_the_rest_is_counted() -> None:
    memory = status(known(3 * GIB), known(4 * GIB), unknown("Silent"))["memory"]
    assert memory == {
        "declaredBytes": 24 * GIB,
        "usedBytes": 7 * GIB,
        "unknownPods": 1,
        "readable": {"declared": "24Gi", "used": "7Gi"},
    }


def test_where_nothing_is_known_there_is_no_number() -> None:
    memory = status(unknown("NoReport"), unknown("NoReport"))["memory"]
    assert memory["usedBytes"] is None
    assert memory["readable"]["used"] is None
    assert memory["unknownPods"] == 2


def test_pods_that_have_not_started_hold_nothing_and_are_not_missing() -> None:
    memory = status(WAITS)["memory"]
    assert (memory["usedBytes"], memory["unknownPods"]) == (0, 0)


def test_pods_are_counted_by_what_holds_their_limits_from_their_start_on() -> None:
    found = status(known(1, "hardware"), known(1), unknown("Silent"), WAITS)["enforcers"]
    assert found == {
        "hardware": 1,
        "driver": 0,
        "mps": 0,
        "framework": 0,
        "none": 1,
        "unknown": 1,
    }


@pytest.mark.parametrize(
    ("stored", "measured", "written"),
    [
        pytest.param(1000, 1010, 1000, id="one percent is no reason to write"),
        pytest.param(1000, 1011, 1011, id="more is"),
        pytest.param(1000, 989, 989, id="less too"),
        pytest.param(1000, 0, 0, id="nothing left is always told"),
        pytest.param(0, 1, 1, id="the first byte is always told"),
        pytest.param(None, 5, 5, id="the first number is always told"),
    ],
)
def test_a_stored_number_stands_while_it_is_as_good(
    stored: int | None, measured: int, written: int
) -> None:
    current = {"memory": {"usedBytes": stored}}
    assert status(known(measured), current=current)["memory"]["usedBytes"] == written


def test_the_condition_tells_what_is_missing_and_what_to_do() -> None:
    assert measurement() == ("False", "NoPods", "No pod of this policy runs now.")
    assert measurement(WAITS)[:2] == ("False", "NoPods")
    assert measurement(known(0), WAITS)[:2] == ("False", "Measured")
    assert measurement(known(0), unknown("NoReport"))[:2] == ("True", "WaitingForReports")
    assert measurement(unknown("NotMeasured"))[:2] == ("True", "NotMeasured")
    assert measurement(unknown("NoAgentOnNode"), known(1))[:2] == ("True", "NoAgentOnNode")
    state, reason, message = measurement(known(0), unknown("Silent"), unknown("Silent"))
    assert (state, reason) == ("True", "Unreadable")
    assert message.startswith("What 2 of 3 running pods hold is not known: 2 Silent. Silent: ")
    assert "look at the log" in message
    _, _, both = measurement(unknown("Silent"), unknown("DriverHidesMemory"))
    assert "DriverHidesMemory: the driver (before 565.57.01)" in both
    assert ". Silent: its sidecar or agent has been silent" in both


def test_the_same_measures_give_the_same_status() -> None:
    pods = known(5), unknown("Silent")
    first = status(*pods)
    assert status(*pods, current=first) == first


def test_a_tenant_tells_what_its_pods_hold() -> None:
    pods = (
        ChargedPod("team", "a", 8 * GIB, known(6 * GIB)),
        ChargedPod("team", "b", 4 * GIB, unknown("Silent")),
        ChargedPod("team", "c", 2 * GIB, known(1 * GIB)),
    )
    found = tenant_status(tenant_of(tenant()), pods, current={}, now=NOW)
    assert (found["usedBytes"], found["unknownPods"]) == (7 * GIB, 1)
    assert found["readable"] == {"charged": "14Gi", "used": "7Gi"}
    assert found["topPods"] == [
        {"namespace": "team", "name": "a", "chargedBytes": 8 * GIB, "usedBytes": 6 * GIB},
        {"namespace": "team", "name": "b", "chargedBytes": 4 * GIB},
        {"namespace": "team", "name": "c", "chargedBytes": 2 * GIB, "usedBytes": GIB},
    ]
    again = tenant_status(tenant_of(tenant()), pods, current=found, now="2026-03-01T13:00:00Z")
    assert again == found
