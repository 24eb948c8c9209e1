"""What holds for every set of reports, pods and cards."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.uses import Usage
from report_builders import GIB, container, gpu, measured, process, report

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No time is promised: other work on the machine is no fault of attribution."""

NODES = ("gpu-1", "gpu-2")
UIDS = ("pod-1", "pod-2", "pod-3", "pod-4")
GPUS = ("GPU-1", "GPU-2", "MIG-1")
REASONS = ("NoNVMLInSidecar", "HostPids", "NotAvailable", "DeviceLost", "DriverHidesMemory")

amounts = st.one_of(st.integers(0, 90 * GIB), st.sampled_from(REASONS))
processes = st.builds(
    process,
    amounts,
    pid=st.integers(1, 6),
    gpu=st.sampled_from(GPUS),
    pod=st.sampled_from((*UIDS, "stranger", None)),
    container=st.sampled_from(("main", "second", "helper", "invented", None)),
    source=st.sampled_from(("NVML", "Shim")),
)
sizes = st.one_of(st.none(), st.integers(0, 90 * GIB))
gpus = st.builds(
    gpu,
    st.sampled_from(GPUS),
    total=sizes,
    reserved=sizes,
    used=sizes,
    unknown=st.sampled_from((None, None, "DeviceLost")),
    parent=st.sampled_from((None, None, "GPU-1")),
)
assignments = st.dictionaries(
    st.tuples(st.sampled_from((*UIDS, "stranger")), st.sampled_from(("main", "second"))),
    st.lists(st.sampled_from(GPUS), max_size=3, unique=True),
    max_size=4,
)
pods = st.lists(
    st.builds(
        lambda uid, node, two, started, shares: measured(
            uid,
            *([container(), container("second", gpus=2)] if two else [container()]),
            node=node,
            started=started,
            shares=shares,
        ),
        st.sampled_from(UIDS),
        st.sampled_from(NODES),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    unique_by=lambda pod: pod.uid,
    max_size=4,
)


@st.composite
def reports(draw: st.DrawFn) -> dict[Sender, Report]:
    """One report of some senders; sidecars claim whatever they like."""
    senders = [*(Sender("NodeAgent", node) for node in NODES)]
    senders += [Sender("Sidecar", uid) for uid in UIDS]
    chosen = draw(st.lists(st.sampled_from(senders), unique=True))
    return {sender: draw(_report_of(sender)) for sender in chosen}


def _report_of(sender: Sender) -> st.SearchStrategy[Report]:
    agent = sender.kind == "NodeAgent"
    return st.builds(
        lambda listed, cards, given_, unnamed, unknown: report(
            *listed,
            gpus=cards,
            agent=agent,
            given=given_ if agent else None,
            unnamed=unnamed,
            unknown=unknown,
        ),
        st.lists(processes, max_size=6),
        st.lists(gpus, max_size=3, unique_by=lambda one: str(one["uuid"])),
        assignments,
        st.sampled_from((0, 0, 1)),
        st.sampled_from((None, None, None, "NVMLError")),
    )


def known_after(
    pods: list[MeasuredPod], taken: list[tuple[Sender, Report]], now: float = 1.0
) -> Usage:
    store = Store()
    for sender, one in taken:
        store.take(sender, one, 0.0)
    return attribute(pods, store.pictures(), now)


@unhurried
@given(pods, reports(), st.randoms(use_true_random=False))
def test_the_order_of_reports_of_different_senders_does_not_matter(
    pods: list[MeasuredPod], taken: dict[Sender, Report], random: Any
) -> None:
    shuffled = list(taken.items())
    random.shuffle(shuffled)
    assert known_after(pods, shuffled) == known_after(pods, list(taken.items()))


@unhurried
@given(pods, reports(), st.sampled_from(UIDS).flatmap(
    lambda uid: st.tuples(st.just(uid), _report_of(Sender("Sidecar", uid)))
))  # fmt: skip
def test_no_sidecar_changes_anything_but_its_own_pod(
    pods: list[MeasuredPod], taken: dict[Sender, Report], forged: tuple[str, Report]
) -> None:
    uid, lie = forged
    sender = Sender("Sidecar", uid)
    others = {key: value for key, value in taken.items() if key != sender}
    before = known_after(pods, list(others.items()))
    after = known_after(pods, [*others.items(), (sender, lie)])
    assert after.cards == before.cards
    for pod in pods:
        if pod.uid != uid:
            assert after.pods[pod.uid] == before.pods[pod.uid]


@unhurried
@given(pods, reports(), st.sampled_from(NODES).flatmap(
    lambda node: st.tuples(st.just(node), _report_of(Sender("NodeAgent", node)))
))  # fmt: skip
def test_no_agent_changes_anything_on_another_node(
    pods: list[MeasuredPod], taken: dict[Sender, Report], said: tuple[str, Report]
) -> None:
    node, one = said
    sender = Sender("NodeAgent", node)
    others = {key: value for key, value in taken.items() if key != sender}
    before = known_after(pods, list(others.items()))
    after = known_after(pods, [*others.items(), (sender, one)])
    for pod in pods:
        if pod.node != node:
            assert after.pods[pod.uid] == before.pods[pod.uid]
    assert [c for c in after.cards if c.node != node] == [c for c in before.cards if c.node != node]


@unhurried
@given(pods, reports())
def test_the_parts_of_every_card_add_up_and_none_is_negative(
    pods: list[MeasuredPod], taken: dict[Sender, Report]
) -> None:
    for card in known_after(pods, list(taken.items())).cards:
        assert (card.parts is None) != (card.unknown is None)
        if (parts := card.parts) is not None:
            shares = (parts.reserved, parts.attributed, parts.unattributed, parts.free)
            assert min(shares) >= 0
            assert sum(shares) == parts.total


@unhurried
@given(pods, reports())
def test_every_container_has_a_number_or_a_reason(
    pods: list[MeasuredPod], taken: dict[Sender, Report]
) -> None:
    found = known_after(pods, list(taken.items()))
    assert found.pods.keys() == {pod.uid for pod in pods}
    for use in found.pods.values():
        for row in use.rows:
            assert (row.amount.bytes is None) != (row.amount.unknown is None)
        named = {row.container for row in use.rows}
        assert {one.name for one in use.pod.containers} <= named
        assert named <= use.pod.container_names | {""}


@unhurried
@given(pods, reports())
def test_unknown_never_becomes_zero(pods: list[MeasuredPod], taken: dict[Sender, Report]) -> None:
    """Where every source of a pod has an unknown part of it, the pod is not known."""
    found = known_after(pods, list(taken.items()))
    for pod in pods:
        own = taken.get(Sender("Sidecar", pod.uid))
        agent = taken.get(Sender("NodeAgent", pod.node))
        if own is None and agent is None:
            assert found.pods[pod.uid].total.bytes == (None if pod.started else 0)
        if own is not None and agent is None and _hides_something(own, pod):
            assert found.pods[pod.uid].total.bytes is None


def _hides_something(own: Report, pod: MeasuredPod) -> bool:
    places = {(one.pid, one.gpu) for one in own.processes if one.pod_uid == pod.uid and one.unknown}
    readable = {
        (one.pid, one.gpu)
        for one in own.processes
        if one.bytes is not None and one.pod_uid in (None, pod.uid)
    }
    return bool(places - readable)


@unhurried
@given(pods, reports())
def test_after_long_silence_nothing_is_known(
    pods: list[MeasuredPod], taken: dict[Sender, Report]
) -> None:
    found = known_after(pods, list(taken.items()), now=91.0)
    # A pod of which nothing has started holds nothing, whoever is silent.
    assert all(use.total.bytes == (None if use.pod.started else 0) for use in found.pods.values())
    assert all(card.parts is None for card in found.cards)
