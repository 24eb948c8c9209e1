"""The GPUs of this process as CUDA numbers them, and what the process holds on each.

CUDA is asked only after a framework has started it, or where one is about to: a process that has
started it can not fork workers that use it. What a process holds is known to NVML alone.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from gpumem_shim.faults import is_theirs

MOST_PROCESSES = 1024
TOLD_SINCE = (565, 57, 1)
"""The first driver that tells a process in a PID namespace of its own how much it holds.
Source: open-gpu-kernel-modules by tag, pull request 614."""


@dataclass(frozen=True)
class Card:
    """A GPU or MIG instance; `uuid` as NVML writes it."""

    uuid: str
    total_bytes: int


class _Uuid(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 16),)


class _Process(ctypes.Structure):
    # The second form of the list, which every driver since 450.66 has; drivers 535.43 to 535.97
    # fill a larger structure in the third form.
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Cards:
    """Raises nothing: what can not be read is None."""

    def __init__(self) -> None:
        self._cuda = _library("libcuda.so.1")
        self._nvml: _Nvml | None = None
        self._known: dict[int, Card] = {}

    def start(self) -> int:
        """Start the driver, which makes no context; how many GPUs it shows to this process."""
        count = ctypes.c_int()
        if self._cuda is None or self._cuda.cuInit(0):
            return 0
        return 0 if self._cuda.cuDeviceGetCount(ctypes.byref(count)) else count.value

    def card(self, ordinal: int) -> Card | None:
        """The GPU with this CUDA ordinal; None where its memory can not be read."""
        card = self._known.get(ordinal)
        if card is None and self._cuda is not None:
            # What can not be read now may be read once the driver has started.
            card = _read(self._cuda, ordinal)
            if card is not None:
                self._known[ordinal] = card
        return card

    def held_by_this_process(self, card: Card) -> int | None:
        """Bytes on the card, context included; None where NVML does not tell."""
        if self._nvml is None:
            self._nvml = _Nvml()
        return self._nvml.held(card.uuid, os.getpid())

    def free(self, card: Card) -> int | None:
        """Bytes of the card that nobody holds; None where NVML does not tell."""
        if self._nvml is None:
            self._nvml = _Nvml()
        return self._nvml.free(card.uuid)


def _read(cuda: ctypes.CDLL, ordinal: int) -> Card | None:
    device, total, uuid = ctypes.c_int(), ctypes.c_size_t(), _Uuid()
    name = ctypes.create_string_buffer(128)
    uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
    if (
        cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        or cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
        or uuid_of(ctypes.byref(uuid), device)
        or cuda.cuDeviceGetName(name, len(name), device)
        or not total.value
    ):
        return None
    text = bytes(uuid.bytes).hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    kind = "MIG" if b" MIG " in name.value else "GPU"
    return Card("-".join((kind, *parts)), total.value)


class _Nvml:
    def __init__(self) -> None:
        library = _library("libnvidia-ml.so.1")
        if library is not None and (library.nvmlInit_v2() != 0 or not _tells(library)):
            library = None
        self._library = library
        self._handles: dict[str, ctypes.c_void_p | None] = {}

    def held(self, uuid: str, pid: int) -> int | None:
        handle = self._handle(uuid)
        for kind in ("Compute", "MPSCompute"):
            list_them = getattr(self._library, f"nvmlDeviceGet{kind}RunningProcesses_v2", None)
            if list_them is None or handle is None:
                continue
            for process in _listed(list_them, handle):
                # 0 and all ones both say that the driver does not tell.
                if process.pid == pid and 0 < process.used < 2**63:
                    return int(process.used)
        return None

    def free(self, uuid: str) -> int | None:
        handle, memory = self._handle(uuid), _Memory()
        if self._library is None or handle is None:
            return None
        failed = self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        return None if failed else int(memory.free)

    def _handle(self, uuid: str) -> ctypes.c_void_p | None:
        if self._library is None:
            return None
        if uuid not in self._handles:
            handle = ctypes.c_void_p()
            failed = self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
            self._handles[uuid] = None if failed else handle
        return self._handles[uuid]


def _listed(list_them: ctypes._FuncPointer, handle: object) -> list[_Process]:
    found = (_Process * MOST_PROCESSES)()
    count = ctypes.c_uint(MOST_PROCESSES)
    if list_them(handle, ctypes.byref(count), found):
        return []
    return found[: count.value]


def _tells(nvml: ctypes.CDLL) -> bool:
    text = ctypes.create_string_buffer(96)
    if nvml.nvmlSystemGetDriverVersion(text, len(text)):
        return False
    parts = text.value.decode("ascii", "replace").partition("-")[0].split(".")
    return all(part.isdecimal() for part in parts) and tuple(map(int, parts)) >= TOLD_SINCE


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        if is_theirs(error):
            raise
        return None
