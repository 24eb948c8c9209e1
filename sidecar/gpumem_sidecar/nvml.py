"""The one door to NVML: it is started late, lost and found again here, and nowhere else.

What NVML says is never trusted to come at all: `Patient`
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
from gpumem_sidecar.known_cards import KnownCards
from gpumem_sidecar.nvml_calls import memory_of, processes_of
from gpumem_sidecar.nvml_errors import reason_of
from gpumem_sidecar.reading import Card, Listed, Reading, Reason

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

RETRY_SECONDS = 5.0
"""Between two attempts to start, where NVML does not."""
LOST_SECONDS = 60.0
"""After a card was lost, NVML is started anew: it may have come back."""
ROUTINE_SECONDS = 600.0
"""NVML counts cards when it starts, so one that was added is seen after a new start only. Rarely:
without persistence mode the driver puts a card to sleep when its last user closes it. Where
something tells of another card, it is done at once."""
DRIVERS_CARDS = "/proc/driver/nvidia/gpus"
"""Where the kernel module lists the cards that it has now. The container toolkit hides it from
containers in legacy mode."""
READS_FOR_ONE_MOMENT = 3
"""Processes and memory are two questions, and what happens between them must not be reported."""


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
        cards_folder: str = DRIVERS_CARDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limits` are read back by the agent alone; a sidecar is not root."""
        self._limits = limits
        self._load = load
        self._cards_folder = cards_folder
        self._settled_at = 0.0
        """Before, it is not started anew for a card that comes or goes."""
        self._there: frozenset[str] | None = None
        """What the kernel module listed when NVML was last started."""
        self._clock = clock
        self._nvml: Any = None
        """The module, while NVML is started."""
        self._start_at = 0.0
        """When it may be, or is to be, started again."""
        self._failure: Reason = "NVMLError"
        self._known = KnownCards()
        self._version = ""
        self._support: Support | None = None
        """Whether any card seen in this reading can limit cgroups."""
        self.outdated = False
        """The driver was replaced under this process, which only a new process can follow."""

    def read(self) -> Reading:
        """All cards as they are now, or why they can not be read."""
        there = _listing(self._cards_folder)
        if self._nvml is not None and there != self._there and self._clock() >= self._settled_at:
            self._start_at = self._clock()
        if self._clock() >= self._start_at:
            self._start(there)
        if self._nvml is None:
            return Reading(unknown=self._failure)
        try:
            self._version = self._nvml.nvmlSystemGetDriverVersion()
            count = self._nvml.nvmlDeviceGetCount()
        except Exception as error:
            self._fail(error)
            return Reading(unknown=self._failure)
        self._support = None
        cards = self._known.read(self._nvml, count, self._measure)
        if not cards:
            # A library without any card tells nothing about those that others were given.
            return Reading(self._version, "NoNVMLInSidecar")
        if any(card.unknown == "DeviceLost" for card in cards):
            self.count_again()
        return Reading(self._version, None, cards, self._support)

    def count_again(self) -> None:
        """Somebody knows of a card that NVML does not list: start it anew within a minute."""
        self._start_at = min(self._start_at, self._clock() + LOST_SECONDS)

    def _start(self, there: frozenset[str] | None) -> None:
        worked_before = self._nvml is not None
        changed = worked_before and there != self._there
        self._stop()
        try:
            nvml = self._load()
            nvml.nvmlInit()
        except Exception as error:
            self._fail(error)
            self.outdated |= worked_before and _is_mismatch(error)
            return
        self._nvml, self._there = nvml, there
        self.outdated = False
        self._settled_at = self._clock() + RETRY_SECONDS
        # A card that the module has just begun to list may be one that NVML can not count yet.
        self._start_at = self._clock() + (LOST_SECONDS if changed else ROUTINE_SECONDS)

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

    def _measure(self, card: Card, handle: Any, *, with_processes: bool = True) -> Card:
        measured = card
        for _ in range(READS_FOR_ONE_MOMENT):
            measured = self._measure_once(card, handle, with_processes)
            attributed = sum(listed.bytes or 0 for listed in measured.processes)
            if measured.used_bytes is None or attributed <= measured.used_bytes:
                break
        return measured

    def _measure_once(self, card: Card, handle: Any, with_processes: bool) -> Card:
        unknown: Reason | None = None
        if with_processes:
            ticks = ticks_after_boot()
            try:
                listed = processes_of(self._nvml, handle, self._version)
                card = card._replace(
                    processes=self._with_limits(handle, listed), listed_ticks=ticks
                )
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


def _listing(folder: str) -> frozenset[str] | None:
    """None where it can not be seen, which tells nothing."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return None


def _is_mismatch(error: Exception) -> bool:
    return type(error).__name__ == "NVMLError_LibRmVersionMismatch"


def ticks_after_boot() -> int:
    """Now, on the clock of the start times in /proc/PID/stat."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)
