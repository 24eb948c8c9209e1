"""What holds a limit is said from evidence alone."""

import pytest

from gpumem_operator.reports.enforcement import Enforcer, enforcer_of_pod
from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.pictures import Amount
from gpumem_operator.reports.uses import GpuUse, PodUse
from report_builders import GIB, GPU, container, measured


def enforcer(*pairs: tuple[GpuContainer, int | str]) -> str:
    rows = tuple(
        GpuUse(
            one.name,
            GPU,
            Amount(held) if isinstance(held, int) else Amount(None, held),
        )
        for one, held in pairs
    )
    pod = measured("pod-1", *(one for one, _ in pairs))
    return str(enforcer_of_pod(PodUse(pod, rows, "NodeAgent")))


SLICE = container(limit=None, profile=10 * GIB)
CARD = container(limit=None, exclusive=True)


@pytest.mark.parametrize(
    ("one", "held", "expected"),
    [
        pytest.param(SLICE, "Silent", "Hardware", id="a slice needs no measurement"),
        pytest.param(
            container(limit=10 * GIB, profile=10 * GIB),
            1,
            "Hardware",
            id="a limit of a whole slice",
        ),
        pytest.param(
            container(limit=4 * GIB, profile=10 * GIB), 1, "None: NotHeld", id="less than the slice"
        ),
        pytest.param(CARD, "NoReport", "Hardware", id="a card that nobody else gets"),
        pytest.param(
            container(limit=4 * GIB, exclusive=True), 1, "None: NotHeld", id="less than the card"
        ),
        pytest.param(container(limit=None), 1, "None: NoLimit", id="nothing declared"),
        pytest.param(container(), GIB, "None: NotHeld", id="inside a limit that nothing holds"),
        pytest.param(container(), 9 * GIB, "None: OverLimit", id="over the limit"),
        pytest.param(container(), "Silent", "Unknown: Silent", id="not measured"),
    ],
)
def test_evidence_decides(one: GpuContainer, held: int | str, expected: str) -> None:
    assert enforcer((one, held)) == expected


def test_a_pod_is_as_good_as_its_weakest_container() -> None:
    good = container("a", limit=None, exclusive=True)
    assert enforcer((good, 1), (container("b"), GIB)) == "None: NotHeld"
    assert enforcer((good, 1), (container("b"), "Silent")) == "Unknown: Silent"
    assert enforcer((container("b"), GIB), (container("c"), "Silent")) == "None: NotHeld"


def test_an_enforcer_is_shown_with_its_reason() -> None:
    assert str(Enforcer("Hardware")) == "Hardware"
    assert str(Enforcer("None", "OverLimit")) == "None: OverLimit"
