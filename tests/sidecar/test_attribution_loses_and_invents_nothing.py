"""Properties of attribution: what is known stays the same, what is unknown never becomes 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_sidecar.attribution import Surroundings, Viewpoint, attribute
from gpumem_sidecar.picture import Cap, Framework, Picture, Process, Shim
from gpumem_sidecar.processes import Facts
from gpumem_sidecar.reading import Card, Listed, Reading
from gpumem_sidecar.shim_state import Key, State

OWN, OTHER = (f"5f0c8f3e-1111-4222-8333-44445555666{n}" for n in (6, 7))
ID = "ab" * 32
GIB = 2**30
LISTED_AT = 1000
AGENT = Viewpoint("NodeAgent")
SIDECAR = Viewpoint("Sidecar", OWN, child_namespace=True, namespace_of_pod=True)

PLACES = st.sampled_from(
    [
        "0::/",
        "0::/system.slice/sshd.service",
        f"0::/kubepods/pod{OWN}/{ID}",
        f"0::/kubepods/pod{OTHER}/{ID}",
        f"0::/../{ID}",
    ]
)
PIDS = st.integers(1, 6)
STARTS = st.sampled_from([5, LISTED_AT, LISTED_AT + 1])
FACTS = st.builds(Facts, STARTS, PLACES, PIDS)
VERSIONS = st.sampled_from([None, "470.82.01", "550.54.14", "580.159.03", "nonsense"])


@st.composite
def cards(draw: st.DrawFn, number: int) -> Card:
    """A card whose processes hold at most what is used; some do not tell."""
    pids = draw(st.lists(PIDS, unique=True, max_size=6))
    held = [draw(st.none() | st.integers(0, 8).map(lambda n: n * GIB)) for _ in pids]
    used = sum(amount or 0 for amount in held) + draw(st.integers(0, 8)) * GIB
    reserved = draw(st.integers(0, 2)) * GIB
    return Card(
        f"GPU-{number}",
        number,
        total_bytes=used + reserved + draw(st.integers(0, 8)) * GIB,
        reserved_bytes=reserved,
        used_bytes=used,
        processes=tuple(map(Listed, pids, held)),
        listed_ticks=LISTED_AT,
    )


READINGS = st.builds(
    lambda version, *found: Reading(version, None, found), VERSIONS, cards(0), cards(1)
)
VIEWPOINTS = st.builds(
    Viewpoint,
    st.sampled_from(["Sidecar", "NodeAgent"]),
    st.just(OWN),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
SURROUNDINGS = st.builds(lambda facts: Surroundings(facts, {}), st.dictionaries(PIDS, FACTS))


@given(READINGS, VIEWPOINTS, SURROUNDINGS)
def test_the_parts_of_a_card_always_add_up(
    reading: Reading, viewpoint: Viewpoint, found: Surroundings
) -> None:
    picture = attribute(reading, viewpoint, found)
    for gpu in picture.gpus:
        assert gpu.total_bytes is not None
        assert gpu.reserved_bytes is not None
        assert gpu.used_bytes is not None
        attributed = sum(one.bytes or 0 for one in picture.processes if one.gpu == gpu.uuid)
        unattributed = gpu.used_bytes - attributed
        free = gpu.total_bytes - gpu.reserved_bytes - gpu.used_bytes
        assert min(attributed, unattributed, free) >= 0
        assert gpu.total_bytes == gpu.reserved_bytes + attributed + unattributed + free


@given(READINGS, VIEWPOINTS, SURROUNDINGS)
def test_an_amount_is_what_nvml_said_or_unknown_and_never_zero(
    reading: Reading, viewpoint: Viewpoint, found: Surroundings
) -> None:
    said = {(card.uuid, one.pid): one.bytes for card in reading.cards for one in card.processes}
    for process in attribute(reading, viewpoint, found).processes:
        assert (process.bytes is None) != (process.unknown is None)
        assert process.bytes != 0
        if process.bytes is not None:
            assert process.bytes == said[process.gpu, process.pid]


@given(READINGS, SURROUNDINGS)
def test_a_sidecar_tells_of_its_own_pod_alone(reading: Reading, found: Surroundings) -> None:
    for process in attribute(reading, SIDECAR, found).processes:
        assert process.pod_uid == OWN
        assert OTHER not in found.facts[process.pid].cgroup


@given(READINGS, SURROUNDINGS)
def test_the_agent_leaves_out_only_who_is_gone(reading: Reading, found: Surroundings) -> None:
    living = {
        (card.uuid, listed.pid)
        for card in reading.cards
        for listed in card.processes
        if listed.pid in found.facts and found.facts[listed.pid].start_time <= LISTED_AT
    }
    picture = attribute(reading, AGENT, found)
    assert {(one.gpu, one.pid) for one in picture.processes} == living


def one_card(*processes: Listed, version: str = "580.159.03") -> Reading:
    card = Card(
        "GPU-0", 0, "", None, 80 * GIB, GIB, 40 * GIB, processes=processes, listed_ticks=LISTED_AT
    )
    return Reading(version, None, (card,))


def seen(
    reading: Reading,
    viewpoint: Viewpoint = SIDECAR,
    *,
    cgroups: dict[int, str],
    states: tuple[State, ...] = (),
) -> Picture:
    facts = {pid: Facts(5, cgroup, pid) for pid, cgroup in cgroups.items()}
    keyed = {Key(OWN, state.pid, state.start_time): state for state in states}
    return attribute(reading, viewpoint, Surroundings(facts, keyed))


def test_a_process_that_is_listed_with_nothing_is_unknown() -> None:
    picture = seen(one_card(Listed(7, 0), Listed(8, None)), cgroups={7: "0::/", 8: "0::/"})
    assert [(one.bytes, one.unknown) for one in picture.processes] == [
        (None, "NotAvailable"),
        (None, "NotAvailable"),
    ]


TORCH = Shim((Framework("torch", "2.9.0"),), 8 * GIB)


def test_a_row_of_a_gpu_has_the_claims_about_that_gpu() -> None:
    caps = (Cap("GPU-0", 7 * GIB), Cap("GPU-1", 5 * GIB))
    shim = Shim((Framework("torch", "2.9.0", caps),), outside=(("GPU-0", 1), ("GPU-1", 2)))
    picture = seen(
        one_card(Listed(7, GIB)), cgroups={7: "0::/"}, states=(State(7, 5, "trainer", shim),)
    )
    [process] = picture.processes
    assert process.shim == Shim((Framework("torch", "2.9.0", caps[:1]),), outside=(("GPU-0", 1),))


def test_the_name_from_one_shim_is_that_of_the_whole_container() -> None:
    sibling = f"0::/../cri-containerd-{ID}.scope"
    picture = seen(
        one_card(Listed(7, GIB), Listed(8, GIB)),
        cgroups={7: sibling, 8: sibling},
        states=(State(7, 5, "trainer", TORCH),),
    )
    assert [(one.container, one.shim) for one in picture.processes] == [
        ("trainer", TORCH),
        ("trainer", None),
    ]


def test_a_state_of_an_earlier_process_of_the_same_id_is_not_its_own() -> None:
    picture = seen(
        one_card(Listed(7, GIB)), cgroups={7: "0::/"}, states=(State(7, 4, "trainer", TORCH),)
    )
    assert [(one.container, one.shim) for one in picture.processes] == [(None, None)]


def test_without_nvml_what_shims_measured_is_relayed_and_the_rest_unknown() -> None:
    picture = seen(
        Reading(unknown="NoNVMLInSidecar"),
        cgroups={},
        states=(
            State(7, 5, "trainer", TORCH, (("GPU-0", 3 * GIB), ("GPU-1", GIB))),
            State(8, 5, "server", TORCH),
        ),
    )
    common = Process(7, "GPU-0", 5, OWN, "trainer", source="Shim", shim=TORCH)
    assert picture.unknown == "NoNVMLInSidecar"
    assert picture.processes == (
        common._replace(bytes=3 * GIB),
        common._replace(gpu="GPU-1", bytes=GIB),
        common._replace(pid=8, gpu="", container="server", unknown="NoNVMLInSidecar"),
    )


def test_of_what_the_driver_hides_the_claim_is_told_beside_the_reason() -> None:
    picture = seen(
        one_card(Listed(7, 0), Listed(8, 0), version="550.54.14"),
        cgroups={7: "0::/", 8: "0::/"},
        states=(State(7, 5, "trainer", TORCH, (("GPU-0", 3 * GIB),)),),
    )
    assert [(one.bytes, one.unknown, one.source) for one in picture.processes] == [
        (3 * GIB, "DriverHidesMemory", "Shim"),
        (None, "DriverHidesMemory", "NVML"),
    ]


@pytest.mark.parametrize("viewpoint", [SIDECAR, AGENT])
def test_a_claim_of_more_than_the_card_has_is_not_passed_on(viewpoint: Viewpoint) -> None:
    picture = seen(
        one_card(Listed(7, None), Listed(8, None)),
        viewpoint,
        cgroups=dict.fromkeys((7, 8), f"0::/kubepods/pod{OWN}/{ID}"),
        states=(
            State(7, 5, "trainer", TORCH, (("GPU-0", 80 * GIB + 1),)),
            State(8, 5, "trainer", TORCH, (("GPU-0", 80 * GIB),)),
        ),
    )
    assert [(one.bytes, one.unknown, one.source) for one in picture.processes] == [
        (None, "NotAvailable", "NVML"),
        (80 * GIB, "NotAvailable", "Shim"),
    ]


def test_a_process_that_can_not_be_read_may_be_anybodys() -> None:
    found = Surroundings({}, {}, unreadable={7})
    for viewpoint in (AGENT, SIDECAR._replace(namespace_of_pod=False)):
        picture = attribute(one_card(Listed(7, GIB)), viewpoint, found)
        assert picture.processes == (Process(7, "GPU-0", unknown="NotAttributed"),)


def test_in_a_namespace_of_its_own_a_process_that_can_not_be_read_is_the_pods() -> None:
    picture = attribute(one_card(Listed(7, GIB)), SIDECAR, Surroundings({}, {}, unreadable={7}))
    assert picture.processes == (Process(7, "GPU-0", pod_uid=OWN, bytes=GIB),)


def test_a_process_whose_file_nobody_read_is_not_one_without_a_shim() -> None:
    facts = {pid: Facts(5, "0::/", pid) for pid in (7, 8)}
    found = Surroundings(facts, {}, unread={Key(OWN, 7, 5)})
    picture = attribute(one_card(Listed(7, GIB), Listed(8, GIB)), SIDECAR, found)
    assert [one.shim_left_out for one in picture.processes] == [True, False]


def test_nvml_s_own_number_is_better_than_a_claim() -> None:
    picture = seen(
        one_card(Listed(7, 5 * GIB)),
        cgroups={7: "0::/"},
        states=(State(7, 5, "trainer", TORCH, (("GPU-0", 1),)),),
    )
    assert [(one.bytes, one.source) for one in picture.processes] == [(5 * GIB, "NVML")]


def test_where_the_node_is_a_container_only_processes_in_the_pod_s_groups_are_the_pod_s() -> None:
    """With hostPID, in a PID namespace that is not the machine's and not the pod's either."""
    picture = seen(
        one_card(*(Listed(pid, GIB) for pid in range(7, 14))),
        SIDECAR._replace(namespace_of_pod=False),
        cgroups={
            7: f"0::/../cri-containerd-{ID}.scope",
            8: f"0::/kubelet/kubepods/pod{OWN}/{ID}",
            9: f"0::/../../crio-{ID}.scope/container",
            10: f"0::/../../kubelet-kubepods-pod{OTHER.replace('-', '_')}.slice/docker-{ID}.scope",
            11: "0::/../../../../system.slice/nvidia-mps.service",
            12: f"0::/../../../{ID}",
            13: "0::/",
        },
    )
    found = {one.pid: (one.pod_uid, one.bytes or one.unknown) for one in picture.processes}
    own, nobodys = (OWN, GIB), (None, "NotAttributed")
    assert found == {7: own, 8: own, 9: own, 11: nobodys, 12: nobodys, 13: nobodys}


def test_a_pod_in_the_node_s_namespace_tells_of_its_own_processes_alone() -> None:
    on_node = SIDECAR._replace(child_namespace=False, namespace_of_pod=False)
    picture = seen(
        one_card(*(Listed(pid, GIB) for pid in (7, 8, 9, 10))),
        on_node,
        cgroups={
            7: f"0::/../cri-containerd-{ID}.scope",
            8: f"0::/../../kubepods-pod{OTHER.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
            9: "0::/../../../system.slice/sshd.service",
            10: f"0::/kubepods/pod{OWN}/{ID}",
        },
    )
    assert [one.pid for one in picture.processes] == [7, 10]
