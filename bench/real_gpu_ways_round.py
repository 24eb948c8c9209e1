"""The known ways round the shim, tried on a GPU: each is stopped, or shown by what is told."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.real_gpu_runs import GIB, MIB, ROOT, Check, Container, Peak, told, within
from bench.real_gpu_torch import FINISH, MULTIPLY, SETTLE, TAKE

UNSET = """
import os
for name in list(os.environ):
    if name == "GPUMEM_LIMIT_BYTES": del os.environ[name]
"""
RAW = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
memory = ctypes.c_uint64()
def raw(gib):
    return cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(gib << 30))
def managed(gib):
    code = cuda.cuMemAllocManaged(ctypes.byref(memory), ctypes.c_size_t(gib << 30), 1)
    return code or cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(gib << 30))
"""
OVERRIDE = """
#include <dlfcn.h>
#include <stddef.h>
typedef int (*allocate_t)(unsigned long long *, size_t);
void *take(ptrdiff_t size, int device, void *stream)
{
    unsigned long long memory = 0;
    (void)device; (void)stream;
    allocate_t allocate = (allocate_t)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
    return allocate(&memory, (size_t)size) ? NULL : (void *)memory;
}
void give(void *memory, ptrdiff_t size, int device, void *stream)
{
    (void)memory; (void)size; (void)device; (void)stream;
}
"""


def _unset_and_raw(container: Container) -> Iterator[Check]:
    """Each one is stopped, or what is told shows it."""
    done = container.run(
        UNSET + TAKE + "held = [torch.empty(1, device='cuda')]\n" + SETTLE + FINISH
    )
    told_of = done.framework("torch")
    yield told("variables removed before the import: told", "NoLimit", told_of["notCapped"])
    done = container.run(TAKE + "held = take()\n" + UNSET + "held += take()\n" + FINISH)
    yield from within("variables removed after the import", done, container.limit)
    # Without site, a virtual environment's packages are not found.
    library = str(Path(find_spec("torch").origin).parents[1])  # type: ignore[union-attr,arg-type]
    for flag in ("-S", "-I", "-E"):
        done = container.run(
            f"import sys; sys.path.append({library!r})\n"
            + TAKE
            + "held = [torch.empty(64 << 20, device='cuda')]\n"
            + FINISH,
            flag,
        )
        seen = f"{len(done.states)} state files, {done.peak // MIB} MiB by NVML"
        good = not done.states and done.peak > 0
        yield Check(f"python {flag}: no claim for a process of NVML's list", "0", seen, good)
    done = container.run(
        TAKE
        + MULTIPLY
        + RAW
        + "assert raw(12) == 0\ntime.sleep(3)\nheld = take()\n"
        + SETTLE
        + FINISH
    )
    [gpu] = done.states[0]["gpus"]
    yield Check(
        "12 GiB by cuMemAlloc: what the process holds and its cap are told",
        "over the limit, cap nearly 0",
        f"{gpu['bytes'] // MIB} MiB, {done.framework('torch')['caps']}",
        gpu["bytes"] > container.limit and done.framework("torch")["caps"][0]["capBytes"] < GIB,
    )


def _managed(container: Container) -> Iterator[Check]:
    peak = Peak()
    process = container.start(
        TAKE + MULTIPLY + RAW + "print(managed(4), flush=True)\nsys.stdin.readline()\n"
    )
    assert process.stdout is not None
    before = peak.used_of_card()
    code = process.stdout.readline().strip()
    grown = peak.used_of_card() - before
    by_process = sum(peak.now().values())
    process.communicate("\n", timeout=60)
    container.states()
    yield Check(
        "4 GiB of managed memory (of the free ones): the card's use tells it, the list does not",
        "card + >= 4 GiB, process < 4 GiB",
        f"code {code}, card + {grown // MIB} MiB, process {by_process // MIB} MiB",
        code == "0" and grown >= 4 * GIB and by_process < 4 * GIB,
    )


def _override(container: Container) -> Iterator[Check]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        yield Check("an allocator of the program", "reported", "not run: no C compiler", True)
        return
    source, library = container.folder / "override.c", container.folder / "override.so"
    source.write_text(OVERRIDE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    done = container.run(
        TAKE
        + f"own = torch.cuda.memory.CUDAPluggableAllocator({str(library)!r}, 'take', 'give')\n"
        + "torch.cuda.memory.change_current_allocator(own)\n"
        + "held = [torch.empty(64 << 20, device='cuda')]\n"
        + SETTLE
        + FINISH
    )
    seen = (done.code, done.framework("torch")["notCapped"])
    yield told("an allocator of the program", (0, "AllocatorHasNoCap"), seen)


def _forged(container: Container) -> Iterator[Check]:
    """A program that the shim is not in writes a state file of its own."""
    golden = ROOT / "tests" / "golden" / "shim-state.json"
    process = container.start(
        TAKE
        + f"state = json.load(open({str(golden)!r}))\n"
        + "start = open('/proc/self/stat').read().rpartition(')')[2].split()[19]\n"
        + "state.update(pid=os.getpid(), startTime=int(start))\n"
        + f"folder = {str(container.folder / 'run' / 'main')!r}\n"
        + "os.makedirs(folder, exist_ok=True)\n"
        + "json.dump(state, open(f'{folder}/{os.getpid()}-{start}.json', 'w'))\n"
        + "held = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(12)]\n"
        + "print(os.getpid(), flush=True); sys.stdin.readline()\n",
        shim=False,
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    rows = [row for row in _reported(container) if row["pid"] == pid]
    process.communicate("\n", timeout=60)
    container.states()
    seen = [(row["source"], row["bytes"]) for row in rows]
    good = bool(seen) and all(source == "NVML" and held > 8 * GIB for source, held in seen)
    yield Check(
        "a forged state file: the report has NVML's bytes", "NVML, > 8 GiB", str(seen), good
    )


def _reported(container: Container) -> list[Any]:
    """Processes in a report: the sidecar's, or the agent's where this is no PID namespace of a
    pod, in which a sidecar tells of nobody."""
    environment = container.environment(shim=False)
    environment["PYTHONPATH"] = str(ROOT / "sidecar")
    environment["GPUMEM_POD_UID"] = "5f0c8f3e-1111-4222-8333-444455556666"
    environment["GPUMEM_PID_NAMESPACE"] = "Pod"
    for mode in ([], ["--agent"]):
        report = subprocess.run(
            [container.python, "-m", "gpumem_sidecar", "--once", *mode],
            env=environment,
            capture_output=True,
            text=True,
        )
        found: list[Any] = json.loads(report.stdout or "{}").get("processes", [])
        if found:
            return found
    return []


PARTS = (_unset_and_raw, _managed, _override, _forged)
