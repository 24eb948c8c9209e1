"""What the status of a policy says, for every mix of pods and other policies."""

from typing import Any

import pytest

from controllers.stored import policies, policy
from gpumem_operator.admission.policy_status import (
    PolicyPod,
    PolicySurroundings,
    covers,
    policy_status,
)
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.selector import LabelSelector

NOW = "2026-03-01T12:00:00Z"
LATER = "2026-03-01T12:30:00Z"


def status(
    record: PolicyRecord,
    *others: PolicyRecord,
    pods: tuple[PolicyPod, ...] = (),
    current: dict[str, Any] | None = None,
    now: str = NOW,
) -> dict[str, Any]:
    surroundings = PolicySurroundings(policies=(record, *others), pods=pods)
    return policy_status(record, surroundings, current=current or {}, now=now)


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    (one,) = [entry for entry in found["conditions"] if entry["type"] == kind]
    return dict(one)


def managed(fingerprint: str, *, name: str = "training", declared: int | None = 8) -> PolicyPod:
    return PolicyPod({}, True, name, fingerprint, declared)


def slipped(**labels: str) -> PolicyPod:
    return PolicyPod(labels, False, "", "", None)


(TRAINING,) = policies(policy(limits={"default": "8Gi"}))
assert TRAINING.spec is not None
PRESENT = TRAINING.spec.pod_fingerprint


def test_pods_are_managed_outdated_or_unmanaged() -> None:
    found = status(TRAINING, pods=(managed(PRESENT), managed("older"), slipped()))
    assert found["pods"] == {"managed": 2, "outdated": 1, "unmanaged": 1}


def test_a_change_that_says_nothing_about_pods_makes_none_of_them_outdated() -> None:
    (same,) = policies(policy(limits={"default": "8Gi"}, priority=7))
    (other,) = policies(policy(limits={"default": "9Gi"}))
    assert status(same, pods=(managed(PRESENT),))["pods"]["outdated"] == 0
    assert status(other, pods=(managed(PRESENT),))["pods"]["outdated"] == 1


def test_pods_of_a_deleted_policy_are_outdated_under_the_one_that_would_decide_today() -> None:
    orphan = managed("whatever", name="deleted")
    assert status(TRAINING, pods=(orphan,))["pods"] == {
        "managed": 1,
        "outdated": 1,
        "unmanaged": 0,
    }
    (other,) = policies(policy("deleted", limits={"default": "8Gi"}))
    assert status(TRAINING, other, pods=(orphan,))["pods"]["managed"] == 0


def test_an_observing_policy_does_not_say_that_it_applies_anything() -> None:
    (record,) = policies(policy(mode="Observe"))
    assert "nothing is limited or refused" in condition(status(record), "Ready")["message"]


def test_what_pods_declared_is_added_up_and_silence_is_not_a_declaration() -> None:
    pods = (
        managed(PRESENT, declared=8),
        managed(PRESENT, declared=16),
        managed(PRESENT, declared=None),
    )
    memory = status(TRAINING, pods=pods)["memory"]
    assert (memory["declaredBytes"], memory["readable"]["declared"]) == (24, "24")


def test_the_status_is_about_the_generation_that_was_read() -> None:
    (record,) = policies(policy(generation=7))
    found = status(record)
    assert found["observedGeneration"] == 7
    assert {entry["observedGeneration"] for entry in found["conditions"]} == {7}


def test_pods_that_went_past_admission_are_named_in_ready() -> None:
    assert condition(status(TRAINING), "Ready")["reason"] == "Applied"
    ready = condition(status(TRAINING, pods=(slipped(), slipped())), "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "UnmanagedPods")
    assert "2 GPU pods" in ready["message"]


def test_a_pod_that_another_policy_would_get_is_not_ours() -> None:
    (strong,) = policies(policy("strong", priority=5, selector={"matchLabels": {"team": "a"}}))
    found = status(TRAINING, strong, pods=(slipped(team="a"), slipped(team="b")))
    assert found["pods"]["unmanaged"] == 1


def test_a_spec_that_can_not_be_read_is_not_ready_and_says_what_is_wrong() -> None:
    (broken,) = policies(policy(limits={"default": "8GB"}))
    found = status(broken, pods=(managed("x"),))
    ready = condition(found, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "spec.limits.default" in ready["message"]
    assert condition(found, "Shadowed")["status"] == "Unknown"
    assert found["pods"] == {"managed": 1, "outdated": 0, "unmanaged": 0}


@pytest.mark.parametrize(
    ("ours", "theirs", "shadowed"),
    [
        pytest.param({}, {"priority": 1}, True, id="a stronger one takes everything"),
        pytest.param({}, {"priority": -1}, False, id="a weaker one takes everything"),
        pytest.param(
            {"selector": {"matchLabels": {"a": "1", "b": "2"}}},
            {"priority": 1, "selector": {"matchLabels": {"a": "1"}}},
            True,
            id="a stronger one asks for less",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "1"}}},
            {"priority": 1, "selector": {"matchLabels": {"a": "1", "b": "2"}}},
            False,
            id="a stronger one asks for more",
        ),
    ],
)
def test_a_policy_whose_selector_is_covered_is_shadowed_before_there_are_pods(
    ours: dict[str, Any], theirs: dict[str, Any], shadowed: bool
) -> None:
    record, other = policies(policy("ours", **ours), policy("theirs", **theirs))
    found = condition(status(record, other), "Shadowed")
    assert (found["status"] == "True") is shadowed
    assert ("theirs" in found["message"]) is shadowed


def test_a_policy_that_wins_none_of_the_pods_that_it_selects_is_shadowed() -> None:
    ours, a, b = policies(
        policy("ours"),
        policy("a", priority=1, selector={"matchLabels": {"x": "a"}}),
        policy("b", priority=1, selector={"matchLabels": {"x": "b"}}),
    )
    taken = (slipped(x="a"), slipped(x="b"))
    found = condition(status(ours, a, b, pods=taken), "Shadowed")
    assert (found["status"], found["reason"]) == ("True", "OtherPolicyWins")
    assert "a or b" in found["message"]
    assert condition(status(ours, a, b, pods=(*taken, slipped())), "Shadowed")["status"] == "False"


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    first = status(TRAINING)
    second = status(TRAINING, pods=(slipped(),), current=first, now=LATER)
    assert condition(second, "Ready")["reason"] == "UnmanagedPods"
    assert condition(second, "Ready")["lastTransitionTime"] == NOW
    (strong,) = policies(policy("strong", priority=1))
    third = status(TRAINING, strong, current=second, now=LATER)
    assert condition(third, "Shadowed")["lastTransitionTime"] == LATER
    assert condition(third, "Ready")["lastTransitionTime"] == NOW


def test_the_same_state_gives_the_same_status_whenever_it_is_computed() -> None:
    pods = (managed(PRESENT), slipped())
    first = status(TRAINING, pods=pods)
    assert status(TRAINING, pods=pods, current=first, now=LATER) == first


def test_conditions_of_others_stay_where_they_are() -> None:
    overuse = {"type": "Overuse", "status": "True", "reason": "X", "lastTransitionTime": NOW}
    found = status(TRAINING, current={"conditions": [overuse]}, now=LATER)
    assert found["conditions"][0] == overuse


def test_a_selector_covers_another_whatever_the_order_of_its_values() -> None:
    def selector(*values: str) -> LabelSelector:
        entry = {"key": "x", "operator": "In", "values": list(values)}
        return LabelSelector.model_validate({"matchExpressions": [entry]})

    assert covers(selector("a", "b"), selector("b", "a"))
    assert not covers(selector("a", "b"), selector("a"))
    assert covers(LabelSelector(), selector("a"))


def test_a_policy_that_enforces_by_no_action_says_that_nothing_is_done() -> None:
    (empty,) = policies(policy(enforcement={"mode": "Enforce", "actions": []}))
    ready = condition(status(empty), "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "NoActions")
    assert (
        "nothing is done about pods over their limit. Next step: leave the list" in ready["message"]
    )
    for harmless in ({"mode": "Enforce"}, {"mode": "Warn", "actions": []}):
        (one,) = policies(policy(enforcement=harmless))
        assert condition(status(one), "Ready")["reason"] == "Applied"


def test_a_value_that_counts_as_less_than_was_stored_is_told_whatever_else_is() -> None:
    (long_ago,) = policies(policy(monitoring={"intervalSeconds": 3600}))
    alone = condition(status(long_ago), "Ready")
    assert (alone["status"], alone["reason"]) == ("True", "PartlyApplied")
    assert alone["message"].startswith("New pods get what the spec says. spec.monitoring.interval")
    (more,) = policies(policy(monitoring={"intervalSeconds": 3600}, enforcement={"mode": "Warn"}))
    for ready in (status(more), status(long_ago, pods=(slipped(),))):
        message = condition(ready, "Ready")["message"]
        assert message.endswith("unknown. Write 60 or less.")
