"""The sampling loop, and what it is made of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gpumem_sidecar.cgroup_tree import CgroupTree
from gpumem_sidecar.driver_limits import DriverLimits
from gpumem_sidecar.nvml import Door
from gpumem_sidecar.outbox import URGENT_SECONDS
from gpumem_sidecar.patience import Patient
from gpumem_sidecar.picture import Picture
from gpumem_sidecar.pod_resources import Answer, PodResources
from gpumem_sidecar.pulse import Pulse
from gpumem_sidecar.sampler import Sampler, viewpoint_of
from gpumem_sidecar.settings import Settings

NVML_SECONDS = 5.0
"""How long NVML may take for one answer; then the amounts are unknown."""


class Rhythm:
    """How long the loop rests: an interval, or less where somebody waits."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._changed = threading.Condition()
        self._urgent = False
        self._ended = False

    def set_urgent(self, urgent: bool) -> None:
        with self._changed:
            self._urgent = urgent
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def rest(self) -> bool:
        """Wait for the next turn; False at the end. One that becomes urgent begins at once."""
        with self._changed:
            if not self._urgent:
                self._changed.wait_for(lambda: self._ended or self._urgent, self._interval)
            else:
                self._changed.wait_for(lambda: self._ended, min(self._interval, URGENT_SECONDS))
            return not self._ended


class Measuring:
    """Door, patience and sampler of one process."""

    def __init__(self, settings: Settings) -> None:
        limits = DriverLimits(CgroupTree(settings.cgroup_path)) if settings.agent else None
        self._door = Door(limits=limits)
        viewpoint = viewpoint_of(
            "NodeAgent" if settings.agent else "Sidecar",
            None if settings.agent else settings.pod_uid or None,
            namespace_of_pod=settings.namespace_of_pod,
        )
        self.sampler = Sampler(
            Patient(self._door.read, NVML_SECONDS).ask,
            viewpoint,
            run_folder="" if settings.agent else settings.run_path,
            pods_folder=settings.pods_path if settings.agent else "",
            given=PodResources(settings.pod_resources).ask if settings.agent else Answer,
            count_again=self._door.count_again,
        )

    @property
    def outdated(self) -> bool:
        return self._door.outdated


def turn(
    measuring: Measuring,
    rhythm: Rhythm,
    pulse: Pulse,
    take: Callable[[Picture, float], None],
    say: Callable[[str], None],
) -> None:
    """Sample until the end."""
    while True:
        # Before the first question: an answer tells of a moment after it.
        began = time.monotonic()
        picture = measuring.sampler.sample()
        if measuring.sampler.answered:
            pulse.beat()
        if measuring.outdated:
            pulse.outdated()
        say(_state(picture, measuring.sampler))
        take(picture, began)
        if not rhythm.rest():
            return


def _state(picture: Picture, sampler: Sampler) -> str:
    if picture.unknown is None:
        state = f"{len(picture.gpus)} GPUs and MIG instances, driver {picture.driver_version}"
    else:
        state = f"processes can not be measured: {picture.unknown}"
    if sampler.kubelet_failure is not None:
        state += f"; the kubelet does not say what it gave to whom: {sampler.kubelet_failure}"
    return f"{state}; ignored state files: yes" if sampler.ignored_files else state
