"""A policy may want the driver or MPS to hold limits: pods then go only where that can be had."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    applied,
    around,
    container,
    env,
    from_secret,
    mig_container,
    pod,
    policy,
    tenant,
    values,
    variables,
)
from gpumem_operator import names
from gpumem_operator.admission.review import review_pod
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.node_enforcers import NodeSummary

DRIVER = (names.DRIVER_REQUEST_ENV, names.DRIVER_LIMIT_ENV)
LIMITS = {"default": "8Gi"}
ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}
HOST = {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}


def wants(minimum: str, **spec: Any) -> PolicyRecord:
    return policy(limits=LIMITS, enforcement={"minimumEnforcer": minimum}, **spec)


def able(label: str) -> Raw:
    return {"key": label, "operator": "In", "values": ["true"]}


def requiring(*terms: Raw) -> Raw:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def affinity(raw: Raw) -> Any:
    return raw["spec"].get("affinity")


def limits_of(raw: Raw, name: str = "train") -> list[str | None]:
    return [variables(raw, name).get(variable) for variable in DRIVER]


@pytest.mark.parametrize(
    ("minimum", "label"),
    [("Driver", names.DRIVER_NODE_LABEL), ("MPS", names.MPS_NODE_LABEL)],
)
def test_the_pod_needs_a_node_with_the_label(minimum: str, label: str) -> None:
    stored = admitted(pod(), wants(minimum))
    assert affinity(stored) == requiring({"matchExpressions": [able(label)]})
    assert stored["metadata"]["annotations"][names.NODE_AFFINITY_ANNOTATION] == label


def test_every_alternative_of_the_author_needs_it_and_what_chose_no_node_still_does() -> None:
    theirs = requiring({"matchExpressions": [ZONE]}, {"matchFields": [HOST]}, {})
    theirs["podAntiAffinity"] = {"some": "thing"}
    theirs["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = []
    ours = able(names.DRIVER_NODE_LABEL)
    terms: tuple[Raw, ...] = (
        {"matchExpressions": [ZONE, ours]},
        {"matchFields": [HOST], "matchExpressions": [ours]},
        {},
    )
    found = affinity(admitted(pod(affinity=theirs), wants("Driver")))
    assert found["podAntiAffinity"] == {"some": "thing"}
    assert found["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == []
    required = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == list(terms)


@pytest.mark.parametrize("again", [wants("None"), wants("Driver", mode="Observe"), tenant()])
@pytest.mark.parametrize(
    "theirs",
    [
        None,
        requiring({"matchExpressions": [ZONE]}),
        requiring({"matchExpressions": [able(names.DRIVER_NODE_LABEL)]}, {}),
    ],
    ids=["none", "a zone", "the same as ours"],
)
def test_it_is_taken_back_under_a_policy_that_does_not_ask(again: Any, theirs: Raw | None) -> None:
    raw = pod()
    if theirs is not None:
        raw["spec"]["affinity"] = theirs
    stored = admitted(raw, wants("Driver"))
    assert affinity(stored) != theirs
    released = admitted(stored, again)
    assert affinity(released) == theirs
    assert names.NODE_AFFINITY_ANNOTATION not in released["metadata"]["annotations"]


def test_it_is_replaced_under_a_policy_that_asks_for_another() -> None:
    stored = admitted(admitted(pod(), wants("Driver")), wants("MPS"))
    assert affinity(stored) == requiring({"matchExpressions": [able(names.MPS_NODE_LABEL)]})
    assert limits_of(stored) == [None, None]


def test_the_driver_gets_the_limit_twice_in_mib() -> None:
    own = [*env(NVIDIA_GPU_MEMORY_LIMIT="81920"), from_secret(names.DRIVER_REQUEST_ENV)]
    stored = admitted(pod(container(gpus=2, memory="7Gi", env=own)), wants("Driver"))
    assert limits_of(stored) == ["3584", "3584"]


def test_the_chart_can_have_the_driver_hold_every_limit() -> None:
    stored = admitted(pod(), policy(limits=LIMITS), values=values(driverLimits="Enabled"))
    assert limits_of(stored) == ["8192", "8192"]
    assert affinity(stored) == requiring({"matchExpressions": [able(names.DRIVER_NODE_LABEL)]})


@pytest.mark.parametrize(
    ("raw", "record", "chart"),
    [
        pytest.param(pod(), policy(limits=LIMITS), Values(), id="by default"),
        pytest.param(
            pod(), wants("Driver", mode="Observe"), values(driverLimits="Enabled"), id="observed"
        ),
        pytest.param(pod(), policy(), values(driverLimits="Enabled"), id="without a limit to hold"),
        pytest.param(
            pod(mig_container()), wants("Driver"), values(driverLimits="Enabled"), id="on MIG"
        ),
    ],
)
def test_nothing_is_set_and_required(raw: Raw, record: PolicyRecord, chart: Values) -> None:
    stored = admitted(raw, record, values=chart)
    assert limits_of(stored) == [None, None]
    assert affinity(stored) is None


def told(raw: Raw, record: PolicyRecord, enforcers: frozenset[str] | None) -> list[str]:
    nodes = None if enforcers is None else NodeSummary(enforcers)
    verdict = review_pod(raw, around(record), Values(), nodes=nodes)
    assert verdict.refusal is None
    applied(raw, verdict)
    return [text for text in verdict.warnings if "hold" in text]


def test_an_author_is_told_at_once_when_no_node_can() -> None:
    [text] = told(pod(), wants("Driver"), frozenset({"MPS"}))
    assert text == (
        "gpumemory.dev: no node can hold limits by Driver (gpumemory.dev/enforcer.driver=true),"
        " which policy ml/research or the chart asks for: the pod waits until one can"
    )
    assert told(pod(), wants("Driver"), frozenset({"Driver"})) == []
    assert told(pod(), wants("None"), frozenset()) == []


def test_nothing_is_told_while_nodes_are_not_known() -> None:
    assert told(pod(), wants("Driver"), None) == []


def test_a_limit_below_a_slice_is_held_by_nothing_and_that_is_told() -> None:
    raw = pod(mig_container(), annotations={names.LIMIT_ANNOTATION: "4Gi"})
    [text] = told(raw, wants("Driver"), frozenset({"Driver"}))
    assert "train: Driver holds no limit below a MIG slice" in text
    assert told(pod(mig_container()), wants("Driver"), frozenset({"Driver"})) == []


def test_a_policy_that_asks_makes_pods_outdated() -> None:
    specs = [record.spec for record in (wants("None"), wants("MPS"), wants("Driver"))]
    assert len({spec.pod_fingerprint for spec in specs if spec}) == 3
    warned = policy(limits=LIMITS, enforcement={"warnPercent": 50}).spec
    assert warned is not None
    assert warned.pod_fingerprint == policy(limits=LIMITS).spec.pod_fingerprint  # type: ignore[union-attr]
