"""Samples are taken faster while a container is measured to be over its limit, for nothing else."""

from __future__ import annotations

import pytest

from gpumem_sidecar.answer import Limit, is_over
from gpumem_sidecar.picture import Picture, Process

GIB = 2**30
POD = "5f0c8f3e-1111-4222-8333-444455556666"
LIMITS = (Limit(POD, "main", 8 * GIB),)
HELD = Process(7, "GPU-0", 1, POD, "main", bytes=9 * GIB)


def test_what_is_measured_counts() -> None:
    assert is_over(Picture(processes=(HELD,)), LIMITS)


@pytest.mark.parametrize(
    "unknown",
    [
        HELD._replace(bytes=None, unknown="NotAvailable"),
        HELD._replace(unknown="DriverHidesMemory", source="Shim"),
    ],
    ids=["nothing is known", "only the process's own word"],
)
def test_what_is_not_measured_does_not(unknown: Process) -> None:
    assert not is_over(Picture(processes=(unknown,)), LIMITS)
