"""Both ends look for excess before anybody attributes anything, and neither may miss it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.enforcement.judged import holds_of, may_show_excess
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.gpu_names import NodeNames
from gpumem_operator.reports.measured import MeasuredPod, limits_of_pod
from gpumem_operator.reports.pictures import Picture, Sender, picture_of
from gpumem_operator.reports.report import Answer
from gpumem_sidecar import answer
from gpumem_sidecar.picture import Picture as Sent
from gpumem_sidecar.picture import Process as SentProcess
from report_builders import GIB, GPU, NODE, OTHER_GPU, container, gpu, measured, process, report

IDS = {"0123": "main", "4567": "second"}
AGENT = Sender("NodeAgent", NODE)
NAMES = NodeNames({GPU, OTHER_GPU})


def pod(uid: str = "pod-1", *limits: int) -> MeasuredPod:
    pairs = zip(IDS.values(), limits, strict=True)
    given = [container(name, gpus=2, limit=limit * GIB) for name, limit in pairs]
    return measured(uid, *given, ids={f"{one}{uid}": name for one, name in IDS.items()})


class Held(NamedTuple):
    """By one process; its container is told by a shim, by the cgroup, by both or by neither."""

    uid: str
    name: str | None
    known_by_id: str | None
    card: str
    amount: int | str

    def raw(self, pid: int) -> dict[str, Any]:
        identity = f"containerd://{self.known_by_id}{self.uid}" if self.known_by_id else None
        return process(
            self.amount, pid=pid, gpu=self.card, pod=self.uid, container=self.name,
            container_id=identity,
        )  # fmt: skip


HELD = st.builds(
    Held,
    st.sampled_from(["pod-1", "pod-2"]),
    st.sampled_from([None, "main", "second"]),
    st.sampled_from([None, *IDS]),
    st.sampled_from([GPU, OTHER_GPU]),
    st.sampled_from(["NotAvailable", GIB, 4 * GIB, 9 * GIB]),
)
PODS = [pod("pod-1", 8, 5), pod("pod-2", 16, 8)]


def seen(*held: Held, used: int = 0) -> Picture:
    processes = [one.raw(100 + number) for number, one in enumerate(held)]
    cards = [gpu(GPU, used=used * GIB), gpu(OTHER_GPU, used=used * GIB)]
    owners = {("pod-1", "main"): [GPU]} if used else {}
    told = report(*processes, gpus=cards, agent=True, given=owners)
    return picture_of(told, AGENT, 0.0, NAMES)


def is_over(picture: Picture) -> bool:
    uses = attribute(PODS, {AGENT: picture}, 0.0).pods.values()
    return any(hold.is_over for use in uses for hold in holds_of(use, age_seconds=0))


@given(st.lists(HELD, max_size=6))
def test_the_leader_looks_wherever_attribution_finds_a_container_over_its_limit(
    held: list[Held],
) -> None:
    picture = seen(*held)
    limits = [limit for one in PODS for limit in limits_of_pod(one)]
    if is_over(picture):
        assert may_show_excess(picture, limits)


@given(st.lists(HELD, max_size=6))
def test_the_sender_hurries_wherever_attribution_finds_one(held: list[Held]) -> None:
    limits = [limit for one in PODS for limit in limits_of_pod(one)]
    told = Answer(next="Any", limits=limits, orders=[]).model_dump_json(by_alias=True)
    processes = [one.raw(100 + number) for number, one in enumerate(held)]
    sent = Sent(
        processes=tuple(
            SentProcess(
                raw["pid"], raw["gpu"], None, raw["podUid"], raw["container"], raw["containerId"],
                raw["bytes"], raw["unknown"],
            )
            for raw in processes
        )
    )  # fmt: skip
    if is_over(seen(*held)):
        assert answer.is_over(sent, answer.parse(told.encode()).limits)


def test_a_pod_without_a_limit_and_one_within_it_are_no_reason_to_look() -> None:
    picture = seen(Held("pod-1", "main", None, GPU, 4 * GIB), used=9)
    assert not may_show_excess(picture, [])
    assert is_over(picture), "managed memory on a card of its own"
    assert may_show_excess(picture, limits_of_pod(pod("pod-1", 8, 5)))
    told = report(process(4 * GIB), gpus=[gpu(used=4 * GIB)])
    within = picture_of(told, AGENT, 0.0, NAMES)
    assert not may_show_excess(within, limits_of_pod(pod("pod-1", 8, 5)))


def test_the_answer_names_containers_by_name_and_id() -> None:
    [first, second] = limits_of_pod(pod("pod-1", 8, 5))
    assert json.loads(first.model_dump_json(by_alias=True)) == {
        "podUid": "pod-1",
        "container": "main",
        "containerId": "0123pod-1",
        "limitBytes": 8 * GIB,
    }
    assert second.limit_bytes == 5 * GIB
    assert limits_of_pod(measured())[0].container_id is None, "it has not started"
