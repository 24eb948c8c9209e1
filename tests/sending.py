"""An outbox of a sender with a clock, and pictures to send."""

from __future__ import annotations

import json
from typing import Any

from gpumem_operator.reports.report import Report
from gpumem_sidecar.answer import Answer
from gpumem_sidecar.outbox import Outbox
from gpumem_sidecar.picture import Framework, Gpu, Picture, Process, Shim
from gpumem_sidecar.report import Acknowledgement

GIB = 2**30
POD = "5f0c8f3e-1111-4222-8333-444455556666"


def picture(
    held: int | None = 10 * GIB, *, used: int = 20 * GIB, pids: tuple[int, ...] = (7,)
) -> Picture:
    shim = Shim((Framework("torch", "2.9.0"),))
    processes = tuple(
        Process(
            pid,
            "GPU-0",
            1,
            POD,
            "main",
            bytes=held,
            unknown=None if held else "NotAvailable",
            shim=shim,
        )
        for pid in pids
    )
    return Picture("580", None, (Gpu("GPU-0", 0, "", None, 80 * GIB, GIB, used),), processes)


class Sender:
    """An outbox with a clock."""

    def __init__(self) -> None:
        self.outbox = Outbox("Sidecar", "start-1")
        self.now = 1000.0

    def message(self, new: Picture | None = None, *, after: float = 0.0) -> Any:
        self.now += after
        if new is not None:
            self.outbox.take(new, self.now)
        content = self.outbox.next_message(self.now)
        if content is None:
            return None
        Report.model_validate_json(content)
        return json.loads(content)

    def accepted(self, *acknowledgements: Acknowledgement, **fields: Any) -> None:
        self.outbox.accepted(Answer(**fields), self.now, acknowledgements)
