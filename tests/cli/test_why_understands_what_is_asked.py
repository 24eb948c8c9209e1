"""KIND/NAME of `kubectl gpumem why`."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.cli.leader import Release, why_not_asked, why_unknown
from gpumem_operator.cli.stored_policy import policy_lines
from gpumem_operator.cli.target import misunderstood, target_of
from gpumem_operator.cli.workload_line import workload_line
from gpumem_operator.kube.errors import ApiError


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gmp/a", "GPUMemoryPolicy"),
        ("policy/a", "GPUMemoryPolicy"),
        ("gpumemorypolicies/a", "GPUMemoryPolicy"),
        ("gmt/a", "GPUMemoryTenant"),
        ("GPUMemoryTenant/a", "GPUMemoryTenant"),
        ("deploy/a", "Deployment"),
        ("pods/a", "Pod"),
    ],
)
def test_kinds_are_known_by_their_names(text: str, kind: str) -> None:
    target = target_of(text)
    assert target is not None
    assert (target.kind, target.name) == (kind, "a")


def test_a_typing_error_is_answered_with_what_was_meant() -> None:
    assert target_of("deploymnt/serve") is None
    assert misunderstood("deploymnt/serve").endswith("did you mean deployment/serve?")
    assert "known are pod, job," in misunderstood("service/x")
    assert misunderstood("train") == "'train' names no kind: give KIND/NAME, like pod/train"


def test_a_policy_is_told_from_its_object() -> None:
    raw = {
        "metadata": {"namespace": "ml", "name": "a", "uid": "1", "generation": 1},
        "spec": {"limits": {"default": "8Gi"}, "enforcement": {"minimumEnforcer": "Driver"}},
        "status": {
            "pods": {"managed": 5, "outdated": 1, "unmanaged": 0},
            "memory": {"declaredBytes": 2**34, "unknownPods": 1},
            "enforcers": {"framework": 1, "none": 0, "unknown": 1},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Applied", "message": "Good."}
            ],
        },
    }
    assert policy_lines(raw) == [
        "policy ml/a",
        "  selects: every GPU pod of its namespace",
        "  mode: Active; priority 0",
        "  limits per GPU: default 8Gi, min 2Gi, max none, context reserve 1Gi",
        "  overuse: enforcement mode Audit: overuse is recorded, nothing is done (Enforce would,"
        " after 60 s)",
        "  asks nodes for something that holds limits: at least Driver"
        " (enforcement.minimumEnforcer)",
        "  pods: 5 managed, 1 outdated, 0 that never went through admission",
        "  declared: 16Gi; used: unknown, of 1 pod it is unknown",
        "  limits held by: 1 framework, 1 unknown, 3 not started",
        "  Ready: True (Applied): Good.",
    ]


def test_the_last_decision_about_replicas_is_told() -> None:
    serve = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
    fresh = {"kind": "StatefulSet", "name": "fresh"}
    raw = {
        "metadata": {"namespace": "ml", "name": "a"},
        "spec": {
            "scaling": [
                {"targetRef": serve, "minReplicas": 2, "maxReplicas": 8},
                {"targetRef": fresh, "maxReplicas": 8},
            ]
        },
        "status": {
            "scaling": [
                {
                    "targetRef": serve,
                    "currentReplicas": 4,
                    "reason": "OnTarget",
                    "message": "Its pods hold 78%.",
                    "changes": [
                        {"time": "t1", "fromReplicas": 2, "toReplicas": 3, "message": "First."},
                        {"time": "t2", "fromReplicas": 3, "toReplicas": 4, "message": "From 3."},
                    ],
                }
            ]
        },
    }
    lines = policy_lines(raw)
    first = lines.index("  scales Deployment serve (apps/v1) between 2 and 8, by Used: 4 replicas")
    assert lines[first + 1 : first + 4] == [
        "    OnTarget: Its pods hold 78%.",
        "    last change, t2: From 3.",
        "  scales StatefulSet fresh (apps/v1): not decided yet; the leader does within 10 s",
    ]


def test_a_workload_is_summed_up_in_its_first_line() -> None:
    rows: list[dict[str, Any]] = [
        {"phase": "Running", "usedBytes": 2**30},
        {"phase": "Running", "usedBytes": None},
        {"phase": "Pending", "usedBytes": 0},
    ]
    assert workload_line("Deployment ml/serve", rows, 3) == (
        "Deployment ml/serve: 3 pods (1 Pending, 2 Running); together they hold 1Gi, and 1 pod an"
        " unknown amount"
    )
    assert workload_line("Deployment ml/serve", [], 0) == "Deployment ml/serve has no pod now."


@pytest.mark.parametrize(
    ("status", "said", "reason"),
    [
        (404, "no release gpu-memory-operator is in namespace gpumem-system (--rel", "NoLeader"),
        (503, "does not answer (503): what is shown was stored last", "NoLeader"),
        (403, "may not ask the leader of release", "NotPermitted"),
    ],
)  # fmt: skip
def test_why_the_leader_was_not_asked(status: int, said: str, reason: str) -> None:
    error = ApiError("POST /api/v1/token", f"{status} something", status)
    assert said in why_not_asked(error, Release())
    assert why_unknown(error) == reason
