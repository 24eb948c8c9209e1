"""The tables of `kubectl gpumem tenants`, from what the leader says and from what is stored."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from typer.testing import CliRunner

from gpumem_operator.cli.app import app
from gpumem_operator.cli.stored_tenants import stored_document
from gpumem_operator.cli.tenants import detail, overview

GIB = 2**30


def shown(renderable: Any) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=10_000).print(renderable)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def row(**changes: Any) -> dict[str, Any]:
    return {
        "name": "research",
        "namespaces": ["ml", "vision"],
        "shared": {},
        "limitBytes": 160 * GIB,
        "wholeGPUBytes": 80 * GIB,
        "onExceeded": "Queue",
        "conditions": [],
        "chargedPods": 2,
        "chargedBytes": 44 * GIB,
        "unknownCharges": 0,
        "usedBytes": 31 * GIB,
        "unknownPods": 0,
        "queuedPods": 0,
        "queuedBytes": 0,
        "topPods": [
            {"namespace": "ml", "name": "a", "chargedBytes": 36 * GIB, "usedBytes": 31 * GIB},
            {"namespace": "vision", "name": "b", "chargedBytes": 8 * GIB, "usedBytes": None},
        ],
    } | changes


def line(**changes: Any) -> str:
    return shown(overview({"tenants": [row(**changes)]}))[1]


def test_a_row_has_all_that_counts() -> None:
    [head, found] = shown(overview({"tenants": [row()]}))
    assert head == "TENANT NAMESPACES LIMIT CHARGED LEFT USED QUEUED LARGEST CHARGES"
    assert found == "research ml, vision 160Gi 44Gi 116Gi 31Gi - ml/a 36Gi, vision/b 8Gi"


def test_what_is_not_known_is_said_and_counted() -> None:
    assert "31Gi + 2 unknown pods" in line(unknownPods=2)
    assert "unknown: 1 pod" in line(usedBytes=None, unknownPods=1)
    assert line(namespaces=None, limitBytes=None, chargedBytes=None).startswith(
        "research unknown unknown unknown unknown 31Gi"
    )


def test_more_than_the_quota_is_less_than_nothing_left() -> None:
    assert " 44Gi -4Gi " in line(limitBytes=40 * GIB)


def test_what_is_held_of_what_is_left_is_told() -> None:
    assert " 44Gi 116Gi, all held " in line(heldBytes=200 * GIB)
    assert " 44Gi 116Gi, 8Gi held " in line(heldBytes=8 * GIB)
    assert " 44Gi -4Gi " in line(limitBytes=40 * GIB, heldBytes=8 * GIB)
    lines = shown(detail({"tenants": [row(heldBytes=8 * GIB)], "pods": []}, "research"))
    assert "charged: 44Gi; left: 116Gi, 8Gi of it held for pods that have waited longer" in lines


def test_what_waits_is_counted_with_what_it_asks_for() -> None:
    assert " 20Gi in 2 pods " in line(queuedPods=2, queuedBytes=20 * GIB)


def test_long_lists_are_cut_and_counted() -> None:
    pods = [{"namespace": "ml", "name": f"p{n}", "chargedBytes": GIB} for n in range(10)]
    found = line(namespaces=["ml"], topPods=pods, chargedPods=25)
    assert found.endswith("p0 1Gi, p1 1Gi, p2 1Gi +22")
    assert "a, b, c +2" in line(namespaces=list("abcde"))


def test_without_tenants_there_is_a_sentence() -> None:
    assert shown(overview({"tenants": []})) == [
        "There is no tenant: no namespace has a quota of GPU memory."
    ]


def test_one_tenant_is_told_line_by_line_with_its_pods() -> None:
    pod = {
        "namespace": "ml",
        "name": "a",
        "charges": [{"tenant": "all", "chargedBytes": GIB},
                    {"tenant": "research", "chargedBytes": 36 * GIB}],
        "queued": [],
        "usedBytes": None,
        "unknown": "Silent",
        "containers": [{"limitBytes": 36 * GIB, "gpus": 1}],
        "enforcedBy": "Unknown",
        "enforcedReason": "Silent",
        "node": "gpu-1",
    }  # fmt: skip
    waits = pod | {
        "name": "b",
        "charges": [{"tenant": "research", "chargedBytes": 0}],
        "queued": [{"tenant": "research", "queuedBytes": 8 * GIB}],
    }
    says = [{"type": "WithinQuota", "status": "True", "reason": "ChargesFit", "message": "Fits."}]
    one = row(shared={"ml": ["all"]}, conditions=says)
    lines = shown(detail({"tenants": [one], "pods": [pod, waits]}, "research"))
    assert lines == [
        "tenant research",
        "namespaces: ml, vision",
        "ml is also in all: its pods are charged to each",
        "limit: 160Gi; a whole GPU counts as 80Gi; past it: pods wait (Queue)",
        "charged: 44Gi; left: 116Gi",
        "used: 31Gi",
        "queued: nothing",
        "WithinQuota: True (ChargesFit): Fits.",
        "",
        "NAMESPACE POD CHARGED USED LIMIT HELD BY NODE",
        "ml a 36Gi unknown: Silent 36Gi Unknown: Silent gpu-1",
        "ml b waits for 8Gi unknown: Silent 36Gi Unknown: Silent gpu-1",
    ]


def test_stored_objects_tell_the_same_way() -> None:
    stored = {
        "metadata": {"name": "research"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": "research"}},
            "quota": {"limit": "160Gi", "wholeGPU": "80Gi"},
        },
        "status": {
            "chargedBytes": 44 * GIB,
            "unknownPods": 1,
            "topPods": [{"namespace": "ml", "name": "a", "chargedBytes": 44 * GIB}],
        },
    }
    spaces = [{"metadata": {"name": "ml", "labels": {"team": "research"}}}]
    found = shown(overview(stored_document([stored], spaces, unasked="NoLeader")))[1]
    assert found == "research ml 160Gi 44Gi 116Gi unknown: 1 pod - a 44Gi"
    blind = shown(overview(stored_document([stored], None, unasked="NoLeader")))[1]
    assert blind == "research unknown 160Gi 44Gi 116Gi unknown: 1 pod - ml/a 44Gi"
    document = stored_document([stored], spaces, unasked="NotPermitted", tenant="research")
    one = shown(detail(document, "research"))
    assert one[-1] == "ml a 44Gi unknown: NotPermitted - - -"


def test_a_stored_tenant_that_was_never_looked_at_has_no_numbers() -> None:
    fresh = {
        "metadata": {"name": "new"},
        "spec": {"namespaceSelector": {}, "quota": {"limit": "1Gi", "wholeGPU": "1Gi"}},
    }
    broken = {"metadata": {"name": "odd"}, "spec": {"quota": {"limit": "12 bananas"}}}
    lines = shown(overview(stored_document([broken, fresh], [], unasked="NoLeader")))
    assert lines[1:] == [
        "new - 1Gi unknown unknown unknown - -",
        "odd unknown unknown unknown unknown unknown - -",
    ]


def test_what_happens_past_the_limit_is_said_in_words() -> None:
    words = {
        "Queue": "pods wait (Queue)",
        "Reject": "pods are refused (Reject)",
        "Warn": "pods are let in and reported (Warn)",
    }
    for past, said in words.items():
        found = shown(detail({"tenants": [row(onExceeded=past)], "pods": []}, "research"))
        assert f"limit: 160Gi; a whole GPU counts as 80Gi; past it: {said}" in found


def test_a_namespace_changes_nothing_as_with_kubectl_for_what_is_in_none() -> None:
    """Whoever adds -n to every command asks the cluster, and gets no word about options."""
    asked = ["tenants", "research", "-n", "ml", "--kubeconfig", "/nonexistent"]
    assert CliRunner().invoke(app, asked).stderr.startswith("error: no cluster can be asked")
