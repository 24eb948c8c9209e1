"""Of an excess that the leader alone can see (a GPU too many), senders know nothing by themselves.

The outbox is that of the sidecar; a second of the clock takes none.
"""

from __future__ import annotations

import pytest

from controllers.overuse_stage import Stage
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Answer, Report
from gpumem_sidecar import answer
from gpumem_sidecar.outbox import URGENT_SECONDS, Outbox
from gpumem_sidecar.picture import Framework, Gpu, Picture, Process, Shim
from gpumem_sidecar.report import Acknowledgement
from report_builders import GIB, GPU, OTHER_GPU

INTERVAL_SECONDS = 5.0
LOOK_SECONDS = 10.0
STEP_SECONDS = 0.5


class Sidecar:
    """Of a program that has a cache on a second GPU, and gives it back when it is asked to."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        [pod] = stage.cluster.pods.values()
        self.sender = Sender("Sidecar", pod["metadata"]["uid"])
        self.reports = 0
        self._outbox = Outbox("Sidecar", "first")
        self._gpus = [GPU, OTHER_GPU]
        self._sampled = float("-inf")

    async def live(self, seconds: float) -> list[str]:
        """What the leader did meanwhile about the pod."""
        done: list[str] = []
        for step in range(int(seconds / STEP_SECONDS)):
            self.stage.cluster.done.clear()
            self._sample()
            self._report()
            if step * STEP_SECONDS % LOOK_SECONDS == 0:
                self.stage.worker.look(self.stage.board.snapshot())
            await self.stage.worker.reconcile()
            done += (one for one in self.stage.cluster.done if not one.startswith("Overuse="))
            self.stage.passes(STEP_SECONDS)
        return done

    def _sample(self) -> None:
        now = self.stage.monotonic()
        if now - self._sampled < (URGENT_SECONDS if self._outbox.urgent else INTERVAL_SECONDS):
            return
        self._sampled = now
        shim = Shim((Framework("torch", "2.9.0", reclaim="Supported"),))
        cards = tuple(
            Gpu(gpu, n, "", None, 80 * GIB, GIB, 3 * GIB) for n, gpu in enumerate(self._gpus)
        )
        processes = tuple(
            Process(7, gpu, 1, self.sender.id, "main", bytes=3 * GIB, shim=shim)
            for gpu in self._gpus
        )
        self._outbox.take(Picture("580", None, cards, processes), now)

    def _report(self) -> None:
        stage, now = self.stage, self.stage.monotonic()
        message = self._outbox.next_message(now)
        if message is None:
            return
        self.reports += 1
        told = Report.model_validate_json(message)
        stage.board.store.take(self.sender, told, now)
        stage.orders.heed(self.sender, told.acknowledgements, stage.now)
        urgent = stage.worker.hear(self.sender)
        said = Answer(
            limits=stage.board.limits_of(self.sender),
            orders=stage.orders.of(self.sender),
            urgent=urgent,
        )
        heard = answer.parse(said.model_dump_json(by_alias=True).encode())
        self._outbox.accepted(heard, now, [self._carry_out(order) for order in heard.orders])

    def _carry_out(self, order: answer.Order) -> Acknowledgement:
        self._gpus = [GPU]
        return Acknowledgement(order.id, "Done", 3 * GIB)


@pytest.mark.parametrize("grace_seconds", [5, 60])
async def test_what_is_asked_to_give_back_has_the_time_to_do_it(grace_seconds: int) -> None:
    stage = Stage("Reclaim", "Evict", grace_seconds=grace_seconds)
    done = await Sidecar(stage).live(180)
    assert done == ["OverLimit", "Reclaiming", "WithinLimit", "told train"]


async def test_its_numbers_are_fresh_from_the_second_report_on_and_its_pod_is_watched() -> None:
    stage = Stage("Evict", grace_seconds=3600)
    sidecar = Sidecar(stage)
    await sidecar.live(60)
    before = sidecar.reports
    await sidecar.live(10)
    assert sidecar.reports - before >= 10
    assert stage.board.age_of(sidecar.sender) < 1
