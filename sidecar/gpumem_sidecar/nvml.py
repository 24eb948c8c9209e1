"""The one door to NVML: it is started late, lost and found again here, and nowhere else.

Every error becomes a reason in one place. What NVML says is never trusted to come at all: `Patient`
asks in a thread of its own, and whoever waits goes on without an answer.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from gpumem_sidecar.driver_limits import DriverLimits, Support
from gpumem_sidecar.nvml_calls import memory_of, processes_of
from gpumem_sidecar.reading import Card, Listed, Reading, Reason

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

RETRY_SECONDS = 5.0
"""Between two attempts to start, where NVML does not."""
LOST_SECONDS = 60.0
"""After a card was lost, NVML is started anew: it may have come back."""
ROUTINE_SECONDS = 600.0
"""NVML counts cards when it starts, so one that was added is seen after a new start only. Rarely:
without persistence mode the driver puts a card to sleep when its last user closes it."""
READS_FOR_ONE_MOMENT = 3
"""Processes and memory are two questions, and what happens between them must not be reported."""

REASONS: dict[str, Reason] = {
    "LibraryNotFound": "NoNVMLInSidecar",
    "DriverNotLoaded": "NoNVMLInSidecar",
    "GpuIsLost": "DeviceLost",
    "GpuNotFound": "DeviceLost",
    "ResetRequired": "DeviceLost",
    "NotSupported": "NotSupported",
    "FunctionNotFound": "NotSupported",
    "Timeout": "Timeout",
}
"""By the name of pynvml's class without `NVMLError_`; every other error is an NVMLError."""


def reason_of(error: Exception) -> Reason:
    """Why there is no number, for anything that pynvml raises."""
    name = type(error).__name__
    # Where the package itself is not installed, the outcome is that of a missing library.
    if isinstance(error, ImportError):
        return "NoNVMLInSidecar"
    if name == "NVMLLibraryMismatchError":  # which is no NVMLError
        return "NotSupported"
    return REASONS.get(name.removeprefix("NVMLError_"), "NVMLError")


def _load() -> Any:
    # pynvml imports `ctypes.util` and does not use it on Linux; the module brings subprocess,
    # tempfile, bz2 and lzma along, which is 1 MiB in every GPU pod.
    unused = ModuleType("ctypes.util")
    vars(unused)["find_library"] = None
    had = sys.modules.setdefault("ctypes.util", unused)
    try:
        import pynvml
    finally:
        if had is unused:
            del sys.modules["ctypes.util"]
    return pynvml


class Door:
    """NVML on this machine. Not for several threads at once; `read` never raises an Exception."""

    def __init__(
        self,
        *,
        limits: DriverLimits | None = None,
        load: Callable[[], Any] = _load,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limits` are read back by the agent alone; a sidecar is not root."""
        self._limits = limits
        self._load = load
        self._clock = clock
        self._nvml: Any = None
        """The module, while NVML is started."""
        self._start_at = 0.0
        """When it may be, or is to be, started again."""
        self._failure: Reason = "NVMLError"
        self._names: dict[int, tuple[str, str]] = {}
        """UUID and model by index: a lost card does not tell them any more."""
        self._support: Support | None = None
        """Whether any card seen in this reading can limit cgroups."""
        self.outdated = False
        """The driver was replaced under this process, which only a new process can follow."""

    def read(self) -> Reading:
        """All cards as they are now, or why they can not be read."""
        if self._clock() >= self._start_at:
            self._start()
        if self._nvml is None:
            return Reading(unknown=self._failure)
        try:
            version = self._nvml.nvmlSystemGetDriverVersion()
            count = self._nvml.nvmlDeviceGetCount()
        except Exception as error:
            self._fail(error)
            return Reading(unknown=self._failure)
        self._support = None
        cards = [card for index in range(count) for card in self._cards(index, version)]
        if any(card.unknown == "DeviceLost" for card in cards):
            self._start_at = min(self._start_at, self._clock() + LOST_SECONDS)
        return Reading(version, None, tuple(cards), self._support)

    def _start(self) -> None:
        worked_before = self._nvml is not None
        self._stop()
        try:
            nvml = self._load()
            nvml.nvmlInit()
        except Exception as error:
            self._fail(error)
            self.outdated |= worked_before and _is_mismatch(error)
            return
        self._nvml = nvml
        self.outdated = False
        self._start_at = self._clock() + ROUTINE_SECONDS

    def _stop(self) -> None:
        nvml, self._nvml = self._nvml, None
        try:
            if nvml is not None:
                nvml.nvmlShutdown()
        except Exception:
            # Whatever it says, the next start decides whether there is an NVML.
            return

    def _fail(self, error: Exception) -> None:
        self.outdated |= self._nvml is not None and _is_mismatch(error)
        self._failure = reason_of(error)
        self._stop()
        self._start_at = self._clock() + RETRY_SECONDS

    def _cards(self, index: int, version: str) -> list[Card]:
        """The card and its MIG instances."""
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid, model = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
        except Exception as error:
            return self._lost(index, reason_of(error))
        self._names[index] = (uuid, model)
        card = Card(uuid, index, model)
        try:
            most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        except Exception:
            most = 0  # a driver or a card that knows no MIG
        if most == 0:
            return [self._measure(card, handle, version)]
        # Its processes are those of its instances, and would be counted twice.
        whole = self._measure(card, handle, version, with_processes=False)
        return [whole, *self._instances(card, handle, most, version)]

    def _lost(self, index: int, reason: Reason) -> list[Card]:
        if index not in self._names:
            return []  # nobody knows which card it is
        uuid, model = self._names[index]
        return [Card(uuid, index, model, unknown=reason)]

    def _instances(self, card: Card, handle: Any, most: int, version: str) -> list[Card]:
        nvml, found = self._nvml, []
        for index in range(most):
            try:
                instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                uuid = nvml.nvmlDeviceGetUUID(instance)
            except Exception:
                continue  # indices have gaps, and a container does not see the instances of others
            named = Card(uuid, index, card.model, parent=card.uuid)
            found.append(self._measure(named, instance, version))
        return found

    def _measure(
        self, card: Card, handle: Any, version: str, *, with_processes: bool = True
    ) -> Card:
        measured = card
        for _ in range(READS_FOR_ONE_MOMENT):
            measured = self._measure_once(card, handle, version, with_processes)
            attributed = sum(listed.bytes or 0 for listed in measured.processes)
            if measured.used_bytes is None or attributed <= measured.used_bytes:
                break
        return measured

    def _measure_once(self, card: Card, handle: Any, version: str, with_processes: bool) -> Card:
        unknown: Reason | None = None
        if with_processes:
            ticks = ticks_after_boot()
            try:
                listed = self._with_limits(handle, processes_of(self._nvml, handle, version))
                card = card._replace(processes=listed, listed_ticks=ticks)
            except Exception as error:
                unknown = reason_of(error)
        try:
            total, reserved, used = memory_of(self._nvml, handle)
        except Exception as error:
            return card._replace(unknown=reason_of(error))
        return card._replace(
            total_bytes=total, reserved_bytes=reserved, used_bytes=used, unknown=unknown
        )

    def _with_limits(self, handle: Any, listed: tuple[Listed, ...]) -> tuple[Listed, ...]:
        if self._limits is None:
            return listed
        support = self._limits.support(self._nvml, handle)
        if self._support != "Supported":
            self._support = support
        return self._limits.on(self._nvml, handle, listed) if support == "Supported" else listed


def _is_mismatch(error: Exception) -> bool:
    return type(error).__name__ == "NVMLError_LibRmVersionMismatch"


def ticks_after_boot() -> int:
    """Now, on the clock of the start times in /proc/PID/stat."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)
