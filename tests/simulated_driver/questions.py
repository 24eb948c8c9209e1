"""Asks an NVML, real or simulated, questions whose answers do not depend on the card.

Prints them as JSON: `python questions.py HOLDER...`, where HOLDER is a command that takes GPU
memory of card 0, prints a line and stays until its input ends with a line `end`.
`answers_of_a_real_driver.json` is what it printed on an H200 with driver 580 (real_hold.py is the
holder there); the simulation has to give the same answers.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

Info = pynvml.c_nvmlProcessInfo_v3_t
LISTS = {
    "compute": "nvmlDeviceGetComputeRunningProcesses_v3",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "mps": "nvmlDeviceGetMPSComputeRunningProcesses_v3",
}
NEW_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
UNTOUCHED = 0xABABABAB


def call(name: str, *arguments: Any) -> int:
    """The code that the function returns; pynvml's own checks stay out of it."""
    try:
        return int(pynvml._nvmlGetFunctionPointer(name)(*arguments))
    except pynvml.NVMLError as error:
        return int(error.value)  # the library lacks the symbol


def text(name: str, *arguments: Any, size: int) -> int:
    return call(name, *arguments, ctypes.create_string_buffer(256), ctypes.c_uint(size))


def number(name: str, *arguments: Any) -> list[int]:
    value = ctypes.c_uint(UNTOUCHED)
    return [call(name, *arguments, ctypes.byref(value)), value.value]


def life() -> dict[str, Any]:
    pynvml._LoadNvmlLibrary()
    count = ctypes.c_uint()
    steps = {
        "count before the start": call("nvmlDeviceGetCount_v2", ctypes.byref(count)),
        "end before the start": call("nvmlShutdown"),
        "start": call("nvmlInitWithFlags", 0),
        "second start": call("nvmlInit_v2"),
        "end": call("nvmlShutdown"),
        "count after one end of two": call("nvmlDeviceGetCount_v2", ctypes.byref(count)),
        "second end": call("nvmlShutdown"),
        "count after the end": call("nvmlDeviceGetCount_v2", ctypes.byref(count)),
        "third end": call("nvmlShutdown"),
    }
    pynvml.nvmlInit()
    return steps


def finding(card: Any) -> dict[str, Any]:
    device = ctypes.byref(pynvml.c_nvmlDevice_t())
    bus_id = pynvml.nvmlDeviceGetPciInfo(card).busId
    by_bus = "nvmlDeviceGetHandleByPciBusId_v2"
    return {
        "index 99": call("nvmlDeviceGetHandleByIndex_v2", 99, device),
        "unknown uuid": call("nvmlDeviceGetHandleByUUID", b"GPU-none", device),
        "no uuid": call("nvmlDeviceGetHandleByUUID", None, device),
        "no place for the handle": call("nvmlDeviceGetHandleByIndex_v2", 0, None),
        "unknown bus": call(by_bus, b"0000:fe:1f.0", device),
        "own bus": call(by_bus, bus_id.encode(), device),
        "own bus in lower case": call(by_bus, bus_id.lower().encode(), device),
        "own bus with four digits": call(by_bus, bus_id[4:].encode(), device),
    }


def arguments(card: Any) -> dict[str, Any]:
    memory = pynvml.c_nvmlMemory_v2_t()
    return {
        "name into 4 bytes": text("nvmlDeviceGetName", card, size=4),
        "uuid into 4 bytes": text("nvmlDeviceGetUUID", card, size=4),
        "driver version into 2 bytes": text("nvmlSystemGetDriverVersion", size=2),
        "own process name into 2 bytes": text("nvmlSystemGetProcessName", os.getpid(), size=2),
        "process name of nobody": text("nvmlSystemGetProcessName", 4_000_000, size=99),
        "name into nothing": call("nvmlDeviceGetName", card, None, 64),
        "name of no card": text("nvmlDeviceGetName", None, size=64),
        "memory into nothing": call("nvmlDeviceGetMemoryInfo", card, None),
        "memory of no card": call("nvmlDeviceGetMemoryInfo", None, ctypes.byref(memory)),
        "memory with version 0": call("nvmlDeviceGetMemoryInfo_v2", card, ctypes.byref(memory)),
        "index into nothing": call("nvmlDeviceGetIndex", card, None),
        "limits of memory": call("nvmlDeviceGetMemoryLimits_v1", card, None),
        "use of nobody": busy(card),
    }


def busy(card: Any) -> int:
    count = ctypes.c_uint(0)
    never = ctypes.c_ulonglong(2**62)
    return call("nvmlDeviceGetProcessUtilization", card, None, ctypes.byref(count), never)


def mig(card: Any) -> dict[str, Any]:
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    device = ctypes.byref(pynvml.c_nvmlDevice_t())
    attributes = ctypes.byref(pynvml.c_nvmlDeviceAttributes())
    code = call("nvmlDeviceGetMigMode", card, ctypes.byref(current), ctypes.byref(pending))
    return {
        "mode": [code, current.value, pending.value],
        "most instances": number("nvmlDeviceGetMaxMigDeviceCount", card),
        "instance 0": call("nvmlDeviceGetMigDeviceHandleByIndex", card, 0, device),
        "is an instance": number("nvmlDeviceIsMigDeviceHandle", card),
        "gpu instance": number("nvmlDeviceGetGpuInstanceId", card),
        "compute instance": number("nvmlDeviceGetComputeInstanceId", card),
        "card of a card": call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", card, device),
        "attributes": call("nvmlDeviceGetAttributes_v2", card, attributes),
    }


def rooms(card: Any) -> list[list[Any]]:
    """Per room for entries: the code, the number that comes back, the entries written."""
    answers = []
    for room in (0, 1, 2, 3):
        infos = (Info * 4)()
        ctypes.memset(infos, 0xAB, ctypes.sizeof(infos))
        count = ctypes.c_uint(room)
        code = call(LISTS["compute"], card, ctypes.byref(count), infos if room else None)
        answers.append([room, code, count.value, sum(one.pid != UNTOUCHED for one in infos)])
    count = ctypes.c_uint(3)
    answers.append(["3 in nothing", call(LISTS["compute"], card, ctypes.byref(count), None)])
    answers.append(["no count", call(LISTS["compute"], card, None, None)])
    return answers


def listed(card: Any, name: str) -> list[Any]:
    return list(getattr(pynvml, LISTS[name])(card))


def detail(card: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for mode in range(4):
        details = pynvml.c_nvmlProcessDetailList_v1_t()
        details.version, details.mode = pynvml.nvmlProcessDetailList_v1, mode
        code = call("nvmlDeviceGetRunningProcessDetailList", card, ctypes.byref(details))
        answers[f"mode {mode}"] = [code, details.numProcArrayEntries]
    empty = ctypes.byref(pynvml.c_nvmlProcessDetailList_v1_t())
    answers["version 0"] = call("nvmlDeviceGetRunningProcessDetailList", card, empty)
    return answers


def sums(card: Any) -> dict[str, bool]:
    first = pynvml.nvmlDeviceGetMemoryInfo(card)
    second = pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2)
    return {
        "parts of v1 are the whole": first.used + first.free == first.total,
        "parts of v2 are the whole": second.used + second.free + second.reserved == second.total,
        "v1 counts the reserve as used": first.used == second.used + second.reserved,
        "v1 and v2 agree on what is free": first.free == second.free,
        "there is a reserve": second.reserved > 0,
    }


def one_process(card: Any, holder: Sequence[str]) -> dict[str, Any]:
    held = start(holder)
    [entry] = listed(card, "compute")
    answers = {
        "its pid": entry.pid == held.pid,
        "its bytes": entry.usedGpuMemory >= 64 << 20,
        "its instances": [entry.gpuInstanceId, entry.computeInstanceId],
        "rooms": rooms(card),
        "detail": detail(card),
        "sums": sums(card),
        "graphics": len(listed(card, "graphics")),
        "mps": len(listed(card, "mps")),
        "seen from a sibling namespace": from_namespace(NEW_NAMESPACE),
    }
    held.kill()
    held.communicate()
    answers["gone within 5 s of SIGKILL"] = awaited(lambda: not listed(card, "compute"))
    return answers


def one_container(card: Any, holder: Sequence[str]) -> dict[str, Any]:
    held = start([*NEW_NAMESPACE, *holder])
    with open(f"/proc/{held.pid}/task/{held.pid}/children") as children:
        host_pid = int(children.read().split()[0])
    [entry] = listed(card, "compute")
    answers = {
        "its pid is the host's": entry.pid == host_pid,
        "its bytes": entry.usedGpuMemory >= 64 << 20,
        "from inside": from_namespace(["nsenter", "-t", str(host_pid), "-p", "-m"]),
        "from a sibling namespace": from_namespace(NEW_NAMESPACE),
    }
    held.kill()
    held.communicate()
    awaited(lambda: not listed(card, "compute"))
    return answers


FROM_NAMESPACE = """
import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
found = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(card)
memory = pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2)
print([[one.pid, one.usedGpuMemory >= 64 << 20] for one in found], memory.used >= 64 << 20)
"""


def from_namespace(prefix: Sequence[str]) -> str:
    command = [*prefix, sys.executable, "-c", FROM_NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip()[-200:]


def start(holder: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    held = subprocess.Popen([*holder], stdin=pipe, stdout=pipe, text=True)
    assert held.stdout is not None
    assert held.stdout.readline(), "the holder ended without a word"
    return held


def awaited(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def main() -> None:
    holder = sys.argv[1:]
    answers: dict[str, Any] = {"life": life()}
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    codes = [*range(31), 999]
    answers |= {
        "errors": {code: pynvml.nvmlErrorString(code) for code in codes},
        "finding": finding(card),
        "arguments": arguments(card),
        "mig": mig(card),
        "empty": {"rooms": rooms(card), "detail": detail(card), "sums": sums(card)},
        "process": one_process(card, holder),
        "container": one_container(card, holder),
    }
    print(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
