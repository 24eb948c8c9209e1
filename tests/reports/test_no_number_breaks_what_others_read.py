"""Whatever one pod claims, documents and statuses can be written: no sum exceeds a quantity."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.api.quantity import LARGEST_BYTES
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.document import usage_document
from gpumem_operator.reports.pictures import Amount, Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.snapshot import PodView, Snapshot, view_of
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.tenant_view import TenantView
from gpumem_operator.reports.tenants_document import tenants_document
from report_builders import GIB, GPU, OTHER_GPU, Raw, gpu, measured, process, raw_report

LARGE = st.sampled_from([0, 1, 2**62, LARGEST_BYTES])
TENANT = TenantView("team", ("team",), 2**40, None, "Queue")


def viewed(raw: Raw) -> PodView:
    store = Store()
    store.take(Sender("Sidecar", "pod-1"), Report.model_validate(raw), 1.0)
    usage = attribute([measured()], store.pictures(), 1.0)
    return view_of(usage.pods["pod-1"], declared_bytes=1, charges={"team": 1})


@st.composite
def claiming(draw: st.DrawFn) -> Raw:
    """One process of one pod on one card, with numbers as large as a report can hold."""
    place = draw(st.sampled_from([GPU, OTHER_GPU]))
    caps = [{"gpu": place, "capBytes": draw(LARGE)}]
    shim: dict[str, Any] = {
        "frameworks": [{"name": name, "caps": caps} for name in ("torch", "cupy")],
        "contextReserveBytes": draw(LARGE),
        "outside": [{"gpu": place, "bytes": draw(LARGE)}],
    }
    one = process(draw(LARGE), pid=draw(st.integers(1, 9)), gpu=place)
    return one | {"startTime": 5, "shim": shim, "source": draw(st.sampled_from(["NVML", "Shim"]))}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(raw_report(process(80 * GIB + 1)), id="on a card of 80 GiB"),
        pytest.param(raw_report(process(2**40 + 1), gpus=[]), id="on a card of unknown size"),
        pytest.param(
            raw_report(process(2**41), gpus=[gpu(total=LARGEST_BYTES)]), id="on an invented card"
        ),
        pytest.param(
            raw_report(*(process(2**39, pid=pid) for pid in (1, 2, 3)), gpus=[]), id="by several"
        ),
    ],
)
def test_what_no_gpu_has_is_not_held(raw: Raw) -> None:
    """A number that a pod invents would stay in its tenant's byte-seconds for ever."""
    assert viewed(raw).use.total == Amount(None, "NotAvailable")


def test_a_card_may_be_full_to_the_last_byte() -> None:
    assert viewed(raw_report(process(80 * GIB))).use.total.bytes == 80 * GIB


@settings(max_examples=30)
@given(st.lists(claiming(), max_size=4))
def test_every_report_that_is_taken_can_be_told(processes: list[Raw]) -> None:
    view = viewed(raw_report(*processes, gpus=[gpu(), gpu(OTHER_GPU)]))
    snapshot = Snapshot({"pod-1": view}, tenants=(TENANT,))
    usage = orjson.loads(orjson.dumps(usage_document(snapshot, now="")))
    assert len(usage["pods"]) == 1
    tenants = orjson.loads(orjson.dumps(tenants_document(snapshot, now="", tenant="team")))
    assert len(tenants["pods"]) == 1
    assert view.measure.used_bytes is None or view.measure.used_bytes <= LARGEST_BYTES
