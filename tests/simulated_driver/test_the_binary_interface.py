"""Layouts, sizes and error codes are those that pynvml passes and expects."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pynvml

from devcluster.simulated_driver.build import SOURCES, find_compiler
from simulated_driver.node import Node

LAYOUTS = {
    "nvmlMemory_t": pynvml.c_nvmlMemory_t,
    "nvmlMemory_v2_t": pynvml.c_nvmlMemory_v2_t,
    "nvmlProcessInfo_t": pynvml.c_nvmlProcessInfo_v3_t,
    "nvmlProcessDetail_v1_t": pynvml.c_nvmlProcessDetail_v1_t,
    "nvmlProcessDetailList_v1_t": pynvml.c_nvmlProcessDetailList_v1_t,
    "nvmlProcessUtilizationSample_t": pynvml.c_nvmlProcessUtilizationSample_t,
    "nvmlPciInfo_t": pynvml.nvmlPciInfo_t,
    "nvmlDeviceAttributes_t": pynvml.c_nvmlDeviceAttributes,
    "nvmlSetMemoryLimits_v1_t": pynvml.c_nvmlSetMemoryLimits_v1_t,
    "nvmlGetMemoryLimits_v1_t": pynvml.c_nvmlGetMemoryLimits_v1_t,
}


def test_every_field_lies_where_pynvml_has_it(tmp_path: Path) -> None:
    lines = [
        f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));'
        for name, layout in LAYOUTS.items()
        for field, *_ in layout._fields_
    ]
    lines += [f'printf("{name} %zu\\n", sizeof({name}));' for name in LAYOUTS]
    lines += [
        'printf("v2 %u\\n", NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2U));',
        'printf("list %u\\n", NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1U));',
    ]
    source = tmp_path / "layouts.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        f'#include "{SOURCES / "nvml_abi.h"}"\nint main(void) {{ {" ".join(lines)} }}\n'
    )
    program = tmp_path / "layouts"
    subprocess.run([find_compiler(), "-o", str(program), str(source)], check=True)
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout

    expected = [
        f"{name}.{field} {getattr(layout, field).offset}"
        for name, layout in LAYOUTS.items()
        for field, *_ in layout._fields_
    ]
    expected += [f"{name} {ctypes.sizeof(layout)}" for name, layout in LAYOUTS.items()]
    expected += [f"v2 {pynvml.nvmlMemory_v2}", f"list {pynvml.nvmlProcessDetailList_v1}"]
    assert printed.splitlines() == expected


BUFFERS = """
import ctypes, pynvml, sys
Info = pynvml.c_nvmlProcessInfo_v3_t
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
ask = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")
for room in (0, 1, 2, 3, 5):
    infos = (Info * 8)()
    ctypes.memset(infos, 0xAB, ctypes.sizeof(infos))
    count = ctypes.c_uint(room)
    code = ask(handle, ctypes.byref(count), None if room == 0 else infos)
    written = sum(info.pid != 0xABABABAB for info in infos)
    print(room, code, count.value, written)
count = ctypes.c_uint(3)
print(ask(handle, ctypes.byref(count), None), ask(handle, None, None))
"""


def test_a_list_says_how_much_room_it_needs_and_writes_no_further(node: Node) -> None:
    with node.hold(1), node.hold(2), node.hold(3):
        done = node.run(BUFFERS)
    success, invalid, insufficient = 0, 2, 7
    assert done.stdout.splitlines() == [
        f"0 {insufficient} 3 0",
        f"1 {insufficient} 3 0",
        f"2 {insufficient} 3 0",
        f"3 {success} 3 3",
        f"5 {success} 3 3",
        f"{invalid} {invalid}",
    ], done.stderr


def test_an_empty_list_succeeds_without_room(node: Node) -> None:
    done = node.run(BUFFERS)
    assert done.stdout.splitlines()[0] == "0 0 0 0", done.stderr


TEXTS = """
import ctypes, pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
ask = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetName")
for size in (14, 15):
    name = ctypes.create_string_buffer(b"?" * 40)
    print(ask(handle, name, size), name.value.decode()[:14])
print(ask(ctypes.c_void_p(12345), name, 40), ask(None, name, 40), ask(handle, None, 40))
memory = pynvml.c_nvmlMemory_v2_t()
ask = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")
print(ask(handle, ctypes.byref(memory)), ask(handle, None))
"""


def test_short_buffers_foreign_handles_and_wrong_versions_are_refused(node: Node) -> None:
    done = node.run(TEXTS)
    assert done.stdout.splitlines() == [
        "7 ??????????????",
        "0 Simulated H200",
        "2 2 2",
        "13 2",
    ], done.stderr


LIFE = """
import pynvml
def ask():
    try:
        return pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return type(error).__name__
def shut():
    try:
        return pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return type(error).__name__
print(ask())
pynvml.nvmlInit(); print(ask())
pynvml.nvmlInitWithFlags(0); shut(); print(ask())
shut(); print(ask()); print(shut())
pynvml.nvmlInit(); print(ask())
"""


def test_starts_are_counted_and_nothing_answers_outside_them(node: Node) -> None:
    dead = "NVMLError_Uninitialized"
    assert node.run(LIFE).stdout.split() == [dead, "1", "1", dead, dead, "1"]


def test_small_questions_are_answered(node: Node) -> None:
    done = node.run(
        """
import os, pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
by_bus = pynvml.nvmlDeviceGetHandleByPciBusId("0000:18:00.0")
print(pynvml.nvmlDeviceGetUUID(by_bus) == pynvml.nvmlDeviceGetUUID(handle))
print(pynvml.nvmlSystemGetCudaDriverVersion(), pynvml.nvmlDeviceGetComputeMode(handle))
print(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
print("python" in pynvml.nvmlSystemGetProcessName(os.getpid()))
print(pynvml.nvmlErrorString(pynvml.NVML_ERROR_GPU_IS_LOST))
for fail in (
    lambda: pynvml.nvmlDeviceGetHandleByUUID("GPU-none"),
    lambda: pynvml.nvmlDeviceGetHandleByPciBusId("0000:99:00.0"),
    lambda: pynvml.nvmlDeviceGetHandleByIndex(7),
    lambda: pynvml.nvmlDeviceGetProcessUtilization(handle, 0),
    lambda: pynvml.nvmlSystemGetProcessName(4_000_000),
    lambda: pynvml.nvmlDeviceGetTemperature(handle, 0),
):
    try:
        fail()
    except pynvml.NVMLError as error:
        print(type(error).__name__.removeprefix("NVMLError_"))
"""
    )
    assert done.stdout.splitlines() == [
        "True",
        "13000 0",
        "(9, 0)",
        "True",
        "GPU is lost",
        "NotFound",
        "NotFound",
        "InvalidArgument",
        "NotFound",
        "NotFound",
        "FunctionNotFound",
    ], done.stderr
