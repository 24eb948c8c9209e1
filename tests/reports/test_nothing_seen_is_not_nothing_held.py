"""Where nobody looked, or one saw what another one did not, nothing is not known to be held."""

from __future__ import annotations

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.pictures import Amount, Sender
from gpumem_operator.reports.store import Store
from report_builders import GIB, GPU, MIB, container, gpu, measured, process, report
from reports.views import agent, rows, seen, use

POD = measured()


@pytest.mark.parametrize(
    "given", [{}, {("pod-1", "main"): [GPU]}], ids=["the kubelet is not asked", "it was given one"]
)
def test_of_a_pod_that_came_after_the_agents_look_no_process_says_nothing(
    given: dict[tuple[str, str], list[str]],
) -> None:
    def found(since: float, **fields: object) -> object:
        told = agent(*fields.pop("processes", ()), given=given, **fields)  # type: ignore[misc]
        return seen(POD, agent=told, since={POD.uid: since}).pods[POD.uid].total

    assert found(0.5) == Amount(None, "NoReport")
    assert found(0.0) == Amount(0), "the agent looked when it was there"
    assert found(0.5, processes=[process(GIB)]) == Amount(GIB), "what it saw is the pod's"


def test_a_sidecar_that_lists_what_the_agent_does_not_see_is_not_overruled_by_it() -> None:
    """The agent may be unable to tell whose a process is: its card has it as nobody's."""
    nobodys = agent(process(20 * GIB, pod=None), gpus=[gpu(used=20 * GIB)])
    own = report(process(20 * GIB))
    found = use(agent=nobodys, pod_1=own)
    assert found.total == Amount(None, "SendersDisagree", at_least=20 * GIB)
    assert use(agent=nobodys, pod_1=report()).total == Amount(0), "both see nothing of the pod"
    idle = agent(gpus=[gpu(used=20 * MIB)])
    assert use(agent=idle, pod_1=own).total == Amount(0), "an idle card has nothing of anybody"


def test_what_shims_alone_claim_is_no_evidence_against_the_agent() -> None:
    own = report(process(20 * GIB, source="Shim"))
    assert use(agent=agent(gpus=[gpu(used=20 * GIB)]), pod_1=own).total == Amount(0)


def test_a_pod_can_not_hide_behind_a_sidecar_that_says_more_than_the_agent() -> None:
    """Unknown is never acted upon: so what the agent does see counts, whatever the pod claims."""
    found = use(agent=agent(process(10 * GIB)), pod_1=report(process(70 * GIB)))
    assert found.total == Amount(10 * GIB)


def test_a_pod_without_our_sidecar_is_not_measured_by_its_own_word() -> None:
    pod = measured(sidecar=False)
    for told in (report(process(1)), report(process(GIB)), report()):
        assert use(pod, pod_1=told).total == Amount(None, "NotMeasured")
    lost = agent(gpus=[gpu(unknown="DeviceLost")])
    assert use(pod, agent=lost, pod_1=report(process(1))).total.unknown == "DeviceLost"


def test_a_pod_that_is_on_no_node_holds_nothing_whatever_it_reports() -> None:
    pod = measured(node="", started=False)
    assert rows(use(pod, pod_1=report(process(GIB)))) == [("main", "", 0)]
    bound = measured(started=False)
    assert use(bound, pod_1=report(process(GIB))).total == Amount(GIB), "its status may be late"


def test_a_sender_that_a_new_leader_never_heard_is_silent_after_90_seconds() -> None:
    def why(now: float) -> str | None:
        usage = attribute([POD], {}, now, since={POD.uid: 0.0}, running={POD.uid: 100.0})
        return usage.pods[POD.uid].total.unknown

    assert why(190.0) == "NoReport"
    assert why(190.1) == "Silent"


def test_a_pod_that_waited_long_and_has_just_started_is_not_silent_yet() -> None:
    usage = attribute([POD], {}, 1000.0, since={POD.uid: 0.0}, running={})
    assert usage.pods[POD.uid].total.unknown == "NoReport"


def test_a_reason_that_only_a_newer_sender_knows_is_told_as_one_word() -> None:
    """Any word could be sent, and each would be the label of a series."""
    one = process(GIB) | {"bytes": None, "unknown": "SomethingNew"}
    assert use(pod_1=report(one)).total.unknown == "NewerReason"
    store = Store()
    whole = report(gpus=[gpu() | {"unknown": "AlsoNew"}], unknown="EvenNewer")
    store.take(Sender("Sidecar", POD.uid), whole, 0.0)
    [picture] = store.pictures().values()
    assert {picture.unknown, picture.gpus[0].unknown} == {"NewerReason"}


def test_containers_of_a_new_pod_are_told_apart() -> None:
    pod = measured("pod-1", container("main"), container("second"))
    told = agent(process(GIB, container="second"))
    found = seen(pod, agent=told, since={pod.uid: 0.5}).pods[pod.uid]
    assert rows(found) == [("main", "", "NoReport"), ("second", GPU, GIB)]
