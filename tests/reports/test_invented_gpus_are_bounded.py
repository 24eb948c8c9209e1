"""GPUs that a pod invents: each name would be series of its own, and new ones each time."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.gpu_names import MOST_OF_POD
from gpumem_operator.reports.pictures import Amount, Sender
from gpumem_operator.reports.store import Store
from report_builders import GIB, GPU, OTHER_GPU, gpu, measured, process, report
from reports.views import agent, rows, use

POD = measured()


def invented(generation: int, *, source: str = "NVML") -> list[Any]:
    return [
        process(GIB, pid=n + 1, gpu=f"GPU-{generation}-{n}", source=source) for n in range(1000)
    ]


@pytest.mark.parametrize("source", ["NVML", "Shim"])
def test_a_pod_has_few_gpus_however_many_it_names_and_however_often_it_names_others(
    source: str,
) -> None:
    store, shown = Store(), set[str]()
    for generation in range(4):
        # A sender that begins anew does not begin with new names.
        told = report(*invented(generation, source=source), start=str(generation), gpus=[])
        store.take(Sender("Sidecar", POD.uid), told, float(generation))
        found = attribute([POD], store.pictures(), 5.0).pods[POD.uid]
        shown |= {row.gpu for row in found.rows}
        assert found.total == Amount(None, "TooManyGPUs", at_least=1000 * GIB)
    assert len(shown) == MOST_OF_POD + 1
    assert "" in shown, "what has no name is told all the same"


def test_what_a_shim_calls_a_gpu_is_no_name_of_one_unless_it_looks_like_one() -> None:
    claims = (
        process(GIB, pid=1, gpu="MIG-11111111-0000-0000-0000-000000000001", source="Shim"),
        process(GIB, pid=2, gpu="cuda:0", source="Shim"),
    )
    found = use(pod_1=report(*claims, gpus=[]))
    assert [row.gpu for row in found.rows] == ["", "MIG-11111111-0000-0000-0000-000000000001"]
    assert found.total == Amount(None, "TooManyGPUs", at_least=2 * GIB)


def test_an_agent_passes_on_names_of_its_own_cards_alone() -> None:
    claims = (
        process(GIB, pid=1, gpu=GPU, source="Shim"),
        process(GIB, pid=2, gpu=OTHER_GPU, source="Shim"),
    )
    assert rows(use(agent=agent(*claims, gpus=[gpu(GPU)]))) == [
        ("main", "", "TooManyGPUs"),
        ("main", GPU, "NotAvailable"),
    ]
