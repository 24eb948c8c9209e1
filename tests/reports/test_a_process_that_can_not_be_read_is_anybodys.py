"""A process that the agent sees and can not tell whose it is: nobody on its card is known whole."""

from __future__ import annotations

from gpumem_operator.reports.cards import Parts
from gpumem_operator.reports.pictures import Amount
from report_builders import GIB, GPU, OTHER_GPU, gpu, measured, process
from reports.views import agent, seen

NOBODYS = process("NotAttributed", pid=999, pod=None, container=None)
PODS = (measured("pod-1"), measured("pod-2"))


def test_what_is_seen_of_the_pods_on_its_card_is_the_least() -> None:
    said = agent(NOBODYS, process(3 * GIB), gpus=[gpu(used=9 * GIB)])
    found = seen(*PODS, agent=said)
    assert found.pods["pod-1"].total == Amount(None, "NotAttributed", 3 * GIB)
    assert found.pods["pod-2"].total == Amount(None, "NotAttributed")
    assert found.cards[0].parts == Parts(80 * GIB, GIB, 3 * GIB, 6 * GIB, 70 * GIB)


def test_pods_that_were_given_other_cards_are_known() -> None:
    said = agent(
        NOBODYS,
        process(3 * GIB, gpu=OTHER_GPU),
        gpus=[gpu(used=9 * GIB), gpu(OTHER_GPU, used=3 * GIB)],
        given={("pod-1", "main"): [OTHER_GPU], ("pod-2", "main"): [GPU]},
    )
    found = seen(*PODS, agent=said)
    assert found.pods["pod-1"].total == Amount(3 * GIB)
    assert found.pods["pod-2"].total == Amount(None, "NotAttributed")


def test_a_process_of_the_node_leaves_everybody_known() -> None:
    stranger = process(5 * GIB, pid=999, pod=None, container=None)
    found = seen(*PODS, agent=agent(stranger, process(3 * GIB), gpus=[gpu(used=9 * GIB)]))
    assert found.pods["pod-1"].total == Amount(3 * GIB)
    assert found.pods["pod-2"].total == Amount(0)
