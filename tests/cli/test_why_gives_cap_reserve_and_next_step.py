"""What `kubectl gpumem why pod/NAME` tells a person beside the numbers, from a stored pod alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cli_objects import container, pod, policy, tenant
from gpumem_operator import names
from gpumem_operator.api.records import NamespaceRecord, policy_record, tenant_record
from gpumem_operator.cli.explain import Known
from gpumem_operator.cli.why_document import pod_document

GIB = 2**30
KNOWN = Known(
    policies=(policy_record(policy()),), namespace=NamespaceRecord("ml", {}), tenants=(), usage={}
)


def stored(*, handled: bool = True, env: dict[str, str] | None = None, **spec: Any) -> Any:
    """A pod of one GPU with a limit of 8Gi and a reserve of 1Gi, as admission leaves it."""
    ours = {
        names.LIMIT_SOURCE_ENV: "Policy",
        names.LIMIT_BYTES_ENV: str(8 * GIB),
        names.RESERVE_BYTES_ENV: str(GIB),
    }
    main = container(gpu=1)
    if handled:
        main["env"] = [{"name": key, "value": text} for key, text in (ours | (env or {})).items()]
    found = pod(main, **spec)
    found["metadata"] |= {"uid": "1", "labels": {}}
    if handled:
        found["metadata"]["labels"] = {names.MANAGED_LABEL: "true", names.POLICY_LABEL: "training"}
    return found | {"status": {"phase": "Running"}}


def usage(**fields: Any) -> dict[str, Any]:
    """The leader's row of a pod whose only container has these fields."""
    one = {
        "name": "main",
        "usedBytes": GIB,
        "unknown": None,
        "perGpu": [],
        "enforcedBy": "Framework",
        "enforcedReason": None,
    } | fields
    pod_wide = {key: one[key] for key in ("unknown", "enforcedBy", "enforcedReason")}
    return {"uid": "1", "usedBytes": one["usedBytes"], "containers": [one], **pod_wide}


def process(**fields: Any) -> dict[str, Any]:
    """A process of the leader's row, with nothing that bounds it."""
    nothing = dict.fromkeys(("capBytes", "reserveBytes", "driverLimitBytes", "unknown"))
    bound: dict[str, Any] = {"boundBy": "Unknown", "boundReason": None, "frameworks": []}
    return {"pid": 7, "usedBytes": GIB} | nothing | bound | fields


def measured() -> Any:
    """With a sidecar."""
    return stored(initContainers=[{"name": names.SIDECAR_CONTAINER}])


def told(raw: Any, **known: Any) -> list[str]:
    lines: list[str] = pod_document(raw, replace(KNOWN, **known), about_nodes=())["lines"]
    return lines


def steps(raw: Any, **known: Any) -> list[str]:
    found: list[str] = pod_document(raw, replace(KNOWN, **known), about_nodes=())["nextSteps"]
    assert [f"  next step: {step}" for step in found] == [
        line for line in told(raw, **known) if "next step" in line
    ]
    return found


def test_cap_and_reserve_stand_under_the_limit() -> None:
    lines = told(stored())
    at = lines.index("  container main: limit 8Gi per GPU on 1 GPU (Policy)")
    assert lines[at + 1] == (
        "    cap of each process: 7Gi for its frameworks, beside a reserve of 1Gi"
    )


def test_announced_processes_share_the_limit() -> None:
    [row] = pod_document(stored(env={names.PROCESSES_PER_GPU_ENV: "2"}), KNOWN, about_nodes=())[
        "limits"
    ]
    assert (row["limitBytes"], row["capBytes"], row["reserveBytes"]) == (8 * GIB, 3 * GIB, GIB)


def test_a_reserve_that_leaves_nothing_is_said() -> None:
    lines = told(stored(env={names.RESERVE_BYTES_ENV: str(8 * GIB)}))
    assert (
        "    cap of each process: none, since the reserve of 8Gi leaves nothing of the limit"
        in (lines)
    )


def test_a_pod_without_the_shim_has_no_cap() -> None:
    raw = stored()
    raw["spec"]["containers"][0]["env"].pop()
    assert not any("cap of each process" in line for line in told(raw))


def test_a_pythonpath_that_may_hide_the_images_is_told_at_the_end_once_a_container_failed() -> None:
    ours = {names.PYTHON_PATH_ORIGIN_ENV: "Added"}
    assert not any("PYTHONPATH" in line for line in told(stored(env=ours)))
    ended = {"name": "main", "lastState": {"terminated": {"exitCode": 1}}}
    status = {"status": {"phase": "Running", "containerStatuses": [ended]}}
    lines = told(stored(env=ours) | status)
    assert [place for place, line in enumerate(lines) if "PYTHONPATH" in line] == [len(lines) - 1]
    assert not any("PYTHONPATH" in line for line in told(stored() | status))


def test_what_is_held_and_measured_has_no_next_step() -> None:
    assert steps(stored(), usage=usage()) == []
    idle = usage(enforcedBy="Unknown", enforcedReason="NoProcess", usedBytes=0)
    assert steps(stored(), usage=idle) == []


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"enforcedBy": "None", "enforcedReason": "NoShim"}, "start it with the variables"),
        ({"enforcedBy": "None", "enforcedReason": "OverLimit"}, "have the program take less"),
        (
            {"usedBytes": None, "unknown": "Silent", "enforcedBy": "Unknown",
             "enforcedReason": "Silent"},
            "look at the log of container gpumem-sidecar",
        ),
    ],
)  # fmt: skip
def test_what_is_not_held_or_not_known_says_what_to_do(fields: Any, step: str) -> None:
    [found] = steps(measured(), usage=usage(**fields))
    assert found.startswith(step)


def test_a_pod_without_a_sidecar_is_not_sent_to_its_log() -> None:
    silent = {"usedBytes": None, "unknown": "Silent"}
    unknown = usage(enforcedBy="Unknown", enforcedReason="Silent", **silent)
    [found] = steps(stored(), usage=unknown)
    assert found.startswith("its node's agent is what measures it: look whether DaemonSet")


def test_behind_an_excess_stands_why_no_process_was_stopped_at_the_limit() -> None:
    free = process(boundBy="None", boundReason="NoFramework")
    row = {"container": "main", "gpu": "GPU-1", "usedBytes": GIB, "processes": [free]}
    over = usage(enforcedBy="None", enforcedReason="OverLimit", perGpu=[row])
    assert [step.split(",")[0] for step in steps(stored(), usage=over)] == [
        "have the program take less",
        "use a framework that it knows",
    ]


def test_a_default_that_is_not_applied_is_not_asked_for() -> None:
    observing = policy(mode="Observe", limits={"default": "4Gi"})
    unlimited = usage(enforcedBy="None", enforcedReason="NoLimit")
    [step] = steps(stored(), usage=unlimited, policies=(policy_record(observing),))
    assert step.endswith("policy's mode to Active: its default, 4Gi, is not applied in Observe")


def test_a_process_says_whose_number_its_id_is_and_that_its_amount_is_unknown() -> None:
    hidden = process(usedBytes=None, unknown="DriverHidesMemory")
    row = {"container": "main", "gpu": "GPU-1", "usedBytes": None, "unknown": "DriverHidesMemory",
           "processes": [hidden]}  # fmt: skip
    for source, whose in (("Sidecar", "in the pod"), ("NodeAgent", "on the node")):
        lines = told(stored(), usage=usage(perGpu=[row]) | {"source": source})
        [line] = [line for line in lines if line.startswith("    process ")]
        assert line.startswith(
            f"    process 7 (its id {whose}): holds an unknown amount (DriverHidesMemory), bound by"
        )


def test_what_a_pod_holds_on_several_gpus_is_summed_up() -> None:
    rows = [{"container": "main", "gpu": f"GPU-{place}", "usedBytes": GIB} for place in (1, 2)]
    both = usage(perGpu=rows, usedBytes=2 * GIB) | {"source": "Sidecar"}
    assert "  used in all: 2Gi (said by Sidecar)" in told(stored(), usage=both)
    one = usage(perGpu=rows[:1]) | {"source": "Sidecar"}
    assert not any("used in all" in line for line in told(stored(), usage=one))


def test_an_event_tells_how_long_ago_it_was() -> None:
    event = {"reason": "OverLimit", "message": "m", "lastTimestamp": "2026-01-01T10:00:00Z"}
    now = datetime(2026, 1, 1, 10, 4, 30, tzinfo=UTC)
    assert "  event, 4 min ago: OverLimit: m" in told(stored(), events=(event,), now=now)
    fresh = event | {"lastTimestamp": "2026-01-01T10:04:00Z"}
    assert "  event, less than a minute ago: OverLimit: m" in told(
        stored(), events=(fresh,), now=now
    )
    timeless = {"reason": "OverLimit", "message": "m"}
    assert "  event: OverLimit: m" in told(stored(), events=(timeless,), now=now)


def test_a_pod_that_missed_admission_is_to_be_created_again() -> None:
    assert steps(stored(handled=False)) == [
        "create the pod again, so that it goes through admission"
    ]
    ignored = NamespaceRecord("ml", {names.IGNORE_LABEL: "true"})
    assert steps(stored(handled=False), namespace=ignored) == []
    of_tenant = tenant()
    of_tenant["spec"]["namespaceSelector"] = {}
    found = steps(stored(handled=False), policies=(), tenants=(tenant_record(of_tenant),))
    assert found == ["create the pod again, so that it goes through admission"]


def test_an_outdated_pod_is_to_be_created_again() -> None:
    raw = stored()
    raw["metadata"]["annotations"] = {names.POLICY_HASH_ANNOTATION: "before"}
    assert steps(raw, usage=usage()) == ["create the pod again to give it the policy's new plan"]


def test_a_pod_without_a_node_says_what_the_scheduler_lacks() -> None:
    event = {"reason": "FailedScheduling", "message": "Insufficient nvidia.com/memory"}
    assert steps(stored(), events=(event,))[0].startswith("ask for less, or add a node")
    assert steps(stored(nodeName="gpu-1"), events=(event,)) == []


def test_a_pod_for_which_no_node_holds_limits_is_not_told_to_ask_for_less_memory() -> None:
    event = {"reason": "FailedScheduling", "message": "didn't match Pod's node affinity/selector"}
    [step] = steps(stored(), events=(event,), unlabelled=names.MPS_NODE_LABEL)
    assert step == (
        "share the GPUs of some nodes by MPS in the device plugin, or ask nodes for less"
        " (spec.enforcement.minimumEnforcer, or the chart's driverLimits) and create the pod again"
    )


def test_a_pod_that_has_ended_needs_nothing() -> None:
    ended = stored(handled=False) | {"status": {"phase": "Succeeded"}}
    assert steps(ended) == []


def test_the_document_has_the_row_of_top() -> None:
    row = pod_document(stored(), replace(KNOWN, usage=usage()), about_nodes=())
    assert (row["uid"], row["usedBytes"], row["phase"]) == ("1", GIB, "Running")
    blind = pod_document(stored(), replace(KNOWN, usage=None), about_nodes=(), unasked="NoLeader")
    assert (blind["policy"], blind["usedBytes"], blind["unknown"]) == ("training", None, "NoLeader")
