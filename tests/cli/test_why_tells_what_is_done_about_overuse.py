"""`kubectl gpumem why` of a pod over its limit, and of the policy that decides about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cli_objects import pod as raw_pod
from cli_objects import policy
from gpumem_operator import names
from gpumem_operator.api.records import NamespaceRecord, policy_record
from gpumem_operator.cli.explain import Known, explain_pod
from gpumem_operator.cli.stored_policy import policy_lines

GIB = 2**30
ENFORCE = policy(enforcement={"mode": "Enforce", "gracePeriodSeconds": 20})
KNOWN = Known(
    policies=(policy_record(ENFORCE),), namespace=NamespaceRecord("ml", {}), tenants=(), usage={}
)
EVICTED = {
    "time": "2026-01-01T11:01:08Z",
    "pod": "train",
    "uid": "1",
    "action": "Evict",
    "result": "Done",
    "usedBytes": 12 * GIB,
    "limitBytes": 8 * GIB,
    "reason": "evicted",
}


def over(reason: str = "Evicting", status: str = "True", **metadata: Any) -> dict[str, Any]:
    """A pod with a condition of this reason."""
    found = raw_pod()
    found["metadata"] |= {"uid": "1", "labels": {names.MANAGED_LABEL: "true"}, **metadata}
    condition = {
        "type": names.OVERUSE_CONDITION,
        "status": status,
        "reason": reason,
        "message": "Container main holds 12Gi.",
        "lastTransitionTime": "2026-01-01T11:00:40Z",
        "lastProbeTime": "2026-01-01T11:01:05Z",
    }
    return found | {"status": {"phase": "Running", "conditions": [condition]}}


def test_since_when_what_is_said_and_what_follows() -> None:
    lines = explain_pod(over(), KNOWN)
    at = lines.index(
        "  overuse: True (Evicting) since 2026-01-01T11:00:40Z, said at 2026-01-01T11:01:05Z"
    )
    assert lines[at + 1 : at + 3] == [
        "    Container main holds 12Gi.",
        "    policy ml/training: enforcement mode Enforce: after 20 s over the limit Reclaim, then"
        " Evict",
    ]


def test_what_was_done_about_this_very_pod() -> None:
    other = EVICTED | {"uid": "2", "reason": "another one"}
    text = "\n".join(explain_pod(over(), replace(KNOWN, actions=(EVICTED, other))))
    assert "2026-01-01T11:01:08Z Evict: Done (12Gi held, limit 8Gi): evicted" in text
    assert "another one" not in text


def test_actions_about_a_pod_that_are_not_shown_are_counted() -> None:
    lines = explain_pod(over(), replace(KNOWN, actions=(EVICTED,) * 4))
    assert "    1 earlier action stands in status.recentActions of the policy" in lines
    assert not any(
        "earlier" in line for line in explain_pod(over(), replace(KNOWN, actions=(EVICTED,) * 3))
    )


def test_an_evicted_pod_is_on_its_way_out_and_has_no_other_step() -> None:
    lines = explain_pod(over(deletionTimestamp="2026-01-01T11:01:38Z"), KNOWN)
    assert lines[0] == ("pod ml/train (Terminating, to be gone by 2026-01-01T11:01:38Z; Running)")
    [step] = [line for line in lines if "next step" in line]
    assert "wait until it is gone" in step


def test_a_message_of_which_nothing_newer_is_known_says_so() -> None:
    silent: dict[str, Any] = {
        "usedBytes": None,
        "unknown": "Silent",
        "containers": [],
        "enforcedReason": None,
    }
    text = "\n".join(explain_pod(over("NearLimit", "False"), replace(KNOWN, usage=silent)))
    assert "Container main holds 12Gi. What it holds now is not known (Silent)." in text


def test_a_pod_that_never_came_near_its_limit_says_nothing() -> None:
    quiet = over() | {"status": {"phase": "Running"}}
    assert not any("overuse" in line for line in explain_pod(quiet, KNOWN))


def test_a_policy_shows_its_latest_actions_and_that_auditing_does_nothing() -> None:
    raw = policy(enforcement={"mode": "Enforce"}) | {"status": {"recentActions": [EVICTED] * 5}}
    actions = [line for line in policy_lines(raw) if line.startswith("  recent action: ")]
    assert (
        actions
        == [
            "  recent action: 2026-01-01T11:01:08Z Evict of pod train: Done (12Gi held, limit 8Gi):"
            " evicted"
        ]
        * 3
    )
    assert (
        "  and 2 earlier actions: kubectl gpumem why gmp/training -n ml -o json (recentActions)"
        in policy_lines(raw)
    )
    few = raw | {"status": {"recentActions": [EVICTED] * 3}}
    assert not any("earlier" in line for line in policy_lines(few))
    [audit] = [line for line in policy_lines(policy()) if line.startswith("  overuse: ")]
    assert audit == (
        "  overuse: enforcement mode Audit: overuse is recorded, nothing is done (Enforce would,"
        " after 60 s)"
    )
