"""The known part of a use that is not known whole is shown as `at least`, and is in no sum."""

from __future__ import annotations

from typing import Any

from cli_objects import pod as pod_object
from gpumem_operator.api.records import NamespaceRecord
from gpumem_operator.cli.cells import amount
from gpumem_operator.cli.explain import Known, explain_pod
from gpumem_operator.reports.document import pod_row
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.snapshot import view_of
from report_builders import GIB, GPU, measured, process, report
from reports.views import POD, use


def row_of(sent: Any, pod: MeasuredPod = POD) -> dict[str, Any]:
    """As the command line gets it."""
    return pod_row(view_of(use(pod, pod_1=sent), declared_bytes=None, charges={}))


def explained(row: dict[str, Any]) -> list[str]:
    known = Known((), NamespaceRecord("ml", {}), usage=row)
    return [line for line in explain_pod(pod_object(), known) if line.startswith("  used by")]


BY_SHIM = report(process(3 * GIB, source="Shim"), unknown="NoNVMLInSidecar", gpus=[])
UNSEEN = report(unknown="NoNVMLInSidecar", gpus=[])


def test_what_shims_alone_told_is_the_least() -> None:
    row = row_of(BY_SHIM)
    assert (row["usedBytes"], row["unknown"]) == (None, "NoNVMLInSidecar")
    assert row["atLeastBytes"] == row["containers"][0]["atLeastBytes"] == 3 * GIB
    assert amount(row) == "unknown: NoNVMLInSidecar, at least 3Gi"
    [line] = explained(row)
    assert line.startswith(
        f"  used by main on {GPU}: unknown, at least 3Gi (said by Shim), NoNVMLInSidecar ("
    )


def test_where_nothing_is_known_there_is_no_least() -> None:
    row = row_of(UNSEEN)
    assert row["atLeastBytes"] == 0
    assert amount(row) == "unknown: NoNVMLInSidecar"
    [line] = explained(row)
    assert line.startswith("  used by main: unknown, NoNVMLInSidecar (")


def test_what_is_known_has_none() -> None:
    row = row_of(report(process(3 * GIB)))
    assert (row["usedBytes"], row["atLeastBytes"]) == (3 * GIB, None)
    assert amount(row) == "3Gi"


def test_the_sum_of_a_pod_is_known_where_only_the_owner_in_it_is_not() -> None:
    stranger = process(GIB, pid=9, container=None, container_id="containerd://9")
    row = row_of(report(stranger), measured(ids={"1": "main"}))
    assert row["usedBytes"] == GIB
    [main] = row["containers"]
    assert (main["usedBytes"], main["unknown"]) == (None, "NotAttributed")
    [elsewhere] = row["elsewhere"]
    assert (elsewhere["container"], elsewhere["usedBytes"]) == (None, GIB)
