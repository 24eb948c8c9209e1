"""The cap of a simulated torch on simulated cards; tests/frameworks has the real releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_container
from gpu_container import GIB, MIB, GpuContainer
from shimmed import interpreters


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    return GpuContainer(tmp_path)


def most(container: GpuContainer, before: str = "") -> int:
    return gpu_container.most(container, "torch", before)


def framework(told: Any, name: str = "torch") -> Any:
    return gpu_container.told_of(told, name)


def test_an_import_starts_nothing_and_says_that_the_cap_waits(container: GpuContainer) -> None:
    told, threads = container.run(
        "import torch, threading\n"
        "assert not torch.cuda.is_initialized() and not gpu.started\n"
        "print(json.dumps(state.describe(process.own.told)))\n"
        "print(threading.active_count())\n"
    )
    assert framework(told)["notCapped"] == "NotStarted"
    assert framework(told)["caps"] == []
    assert threads == 1


def test_selecting_no_device_starts_nothing(container: GpuContainer) -> None:
    assert container.run("import torch; torch.cuda.set_device(-1); print(int(gpu.started))") == 0


def test_the_limit_less_the_reserve_can_be_had_and_no_more(container: GpuContainer) -> None:
    assert 7 * 1024 - 16 <= most(container) <= 7 * 1024


def test_the_cap_is_told_with_what_the_process_holds(container: GpuContainer) -> None:
    told = container.run(
        "import torch\n"
        "torch.allocate(1024)\n"
        "try: torch.allocate(100000)\n"
        "except torch.OutOfMemoryError: pass\n"
        "print(json.dumps(told()))\n"
    )
    torch = framework(told)
    [cap] = torch["caps"]
    [held] = told["gpus"]
    assert 7 * GIB - MIB <= cap["capBytes"] <= 7 * GIB
    assert (torch["notCapped"], torch["capHits"], torch["reclaim"]) == (None, 1, "Supported")
    assert held["uuid"] == cap["gpu"]
    assert (held["bytes"], held["outsideBytes"]) == (1542 * MIB, 518 * MIB)


@pytest.mark.parametrize("version", interpreters())
def test_every_python_caps_both_frameworks(tmp_path: Path, version: str) -> None:
    container = GpuContainer(tmp_path, interpreters()[version])
    told = container.run(
        "import torch, cupy\n"
        "from gpumem_shim import reclaim\n"
        "torch.allocate(1024); cupy.allocate(1024)\n"
        "reclaim.answer(process.own)\n"
        "print(json.dumps(told()))\n"
    )
    assert [len(one["caps"]) for one in told["frameworks"]] == [1, 1]
    assert told["gpus"][0]["bytes"] == (2048 + 518) * MIB


@pytest.mark.parametrize(
    "raised",
    [
        "torch.cuda.set_per_process_memory_fraction(1.0)",
        "torch.cuda.set_per_process_memory_fraction(1.0, device='cuda:0')",
        "torch.cuda.memory.set_per_process_memory_fraction(0.9, 0)",
        "torch.allocate(1); torch.cuda.set_per_process_memory_fraction(1.0)",
        "torch.allocate(1); torch._C._cuda_setMemoryFraction(1.0, 0); refresh()",
    ],
)
def test_the_program_can_not_raise_it(container: GpuContainer, raised: str) -> None:
    assert most(container, raised) <= 7 * 1024


def test_a_lower_cap_of_the_program_stays_and_may_be_raised_to_ours(
    container: GpuContainer,
) -> None:
    lower = (
        "set_fraction = torch.cuda.set_per_process_memory_fraction\n"
        "set_fraction(2 * 2**30 / (gpu.start() or gpu.total(0)))\n"
        "refresh()\n"
    )
    assert 2 * 1024 - 32 <= most(container, lower) <= 2 * 1024
    assert 7 * 1024 - 32 <= most(container, lower + "set_fraction(1.0)") <= 7 * 1024


def test_a_fraction_in_the_allocators_settings_is_a_lower_cap(container: GpuContainer) -> None:
    container.environment["PYTORCH_CUDA_ALLOC_CONF"] = "per_process_memory_fraction: 0.01"
    container.environment["PYTORCH_ALLOC_CONF"] = "per_process_memory_fraction:0.001"
    assert 1000 < most(container) < 1500


@pytest.mark.parametrize(
    ("arguments", "error"), [("1", "TypeError"), ("1.5", "ValueError"), ("-0.1", "ValueError")]
)
def test_torch_says_itself_what_is_wrong(
    container: GpuContainer, arguments: str, error: str
) -> None:
    seen = container.run(
        "import torch, inspect\n"
        "set_fraction = torch.cuda.set_per_process_memory_fraction\n"
        f"try: set_fraction({arguments})\n"
        "except Exception as raised: print(json.dumps(type(raised).__name__))\n"
        "print(json.dumps([str(inspect.signature(set_fraction)), set_fraction.__doc__]))\n"
    )
    assert seen == [error, ["(fraction, device=None)", "Set memory fraction for a process."]]


def test_what_is_held_elsewhere_beyond_the_reserve_lowers_the_cap(
    container: GpuContainer,
) -> None:
    fits = most(container, "torch.allocate(1); gpu.beside(2048); refresh()")
    # 518 MiB of context and 2048 beside are 1542 MiB more than the reserve.
    assert 7 * 1024 - 1542 - 48 <= fits <= 7 * 1024 - 1542


def test_a_cap_is_never_lowered_to_none(container: GpuContainer) -> None:
    told = container.run(
        "import torch\ntorch.allocate(1); gpu.beside(20000)\nprint(json.dumps(told()))\n"
    )
    assert framework(told)["caps"][0]["capBytes"] <= 1


def test_announced_processes_divide_the_limit(container: GpuContainer) -> None:
    container.environment["GPUMEM_PROCESSES_PER_GPU"] = "2"
    assert 3 * 1024 - 16 <= most(container) <= 3 * 1024


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"GPUMEM_LIMIT_BYTES": ""}, "NoLimit"),
        ({"GPUMEM_LIMIT_BYTES": str(GIB)}, "TooNear"),
        ({"GPUMEM_LIMIT_BYTES": str(2 * GIB), "GPUMEM_PROCESSES_PER_GPU": "2"}, "TooNear"),
        ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "0"}, "AllocatorHasNoCap"),
        ({"SIMULATED_TORCH_BACKEND": "pluggable"}, "AllocatorHasNoCap"),
        ({"SIMULATED_TORCH": "1.13.1"}, "TooOld"),
        ({"SIMULATED_TORCH": "?"}, "TooOld"),
        ({"SIMULATED_TORCH_WITHOUT_CUDA": "1"}, "NoGPUSupport"),
        (
            {"SIMULATED_CUDA_HIDES_THE_TOTAL": "1", "SIMULATED_TOTAL_BYTES": str(80 * GIB)},
            "NoTotal",
        ),
    ],
)
def test_where_nothing_is_capped_the_reason_is_told(
    container: GpuContainer, variables: dict[str, str], reason: str
) -> None:
    container.environment |= variables
    told = container.run(
        "import torch\n"
        "if torch.version.cuda: torch.allocate(10 * 1024)\n"
        "print(json.dumps(told()))\n"
    )
    assert framework(told)["notCapped"] == reason
    assert framework(told)["caps"] == []


def test_an_allocator_that_started_without_a_cache_stays_without_a_cap(
    container: GpuContainer,
) -> None:
    container.environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    told = container.run(
        "import torch; torch.allocate(10)\n"
        "del os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING']\n"
        "torch.allocate(8 * 1024)\n"
        "print(json.dumps(told()))\n"
    )
    assert (framework(told)["notCapped"], framework(told)["caps"]) == ("AllocatorHasNoCap", [])


@pytest.mark.parametrize(
    "variable",
    [
        "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
        "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.01",
    ],
)
def test_what_a_program_sets_for_its_children_changes_nothing_for_itself(
    container: GpuContainer, variable: str
) -> None:
    name, value = variable.split("=")
    told = container.run(
        f"import torch; torch.allocate(10); os.environ[{name!r}] = {value!r}\n"
        "refresh(); torch.allocate(7000)\n"
        "print(json.dumps(told()))\n"
    )
    [cap] = framework(told)["caps"]
    assert cap["capBytes"] == pytest.approx(7 * GIB, abs=MIB)
    assert framework(told)["notCapped"] is None


def test_a_module_that_is_executed_once_more_stays_capped(container: GpuContainer) -> None:
    told = container.run(
        "import torch, importlib; torch.allocate(10); importlib.reload(torch)\n"
        "print(json.dumps(told()))\n"
    )
    assert framework(told)["notCapped"] is None
    assert [cap["capBytes"] for cap in framework(told)["caps"]] == [pytest.approx(7 * GIB, abs=MIB)]


def test_cuda_malloc_async_is_capped_and_its_cap_hits_are_not_counted(
    container: GpuContainer,
) -> None:
    container.environment["SIMULATED_TORCH_BACKEND"] = "cudaMallocAsync"
    assert most(container) <= 7 * 1024
    told = container.run("import torch; torch.allocate(1); print(json.dumps(told()))")
    assert framework(told)["capHits"] is None


def test_what_a_process_without_a_countable_allocator_holds_is_told(
    container: GpuContainer,
) -> None:
    container.environment["SIMULATED_TORCH_BACKEND"] = "pluggable"
    told = container.run("import torch; torch.allocate(512); print(json.dumps(told()))")
    [held] = told["gpus"]
    assert (held["bytes"], held["outsideBytes"]) == ((512 + 518) * MIB, None)


def test_a_slice_of_a_card_is_told_under_its_own_name(container: GpuContainer) -> None:
    container.environment["SIMULATED_CUDA_NAME"] = "Simulated H200 MIG 1g.18gb"
    told = container.run("import torch; torch.allocate(64); print(json.dumps(told()))")
    [cap] = framework(told)["caps"]
    assert cap["gpu"] == "MIG-51350000-0000-4000-8000-000000000000"


def test_a_limit_above_the_card_is_the_card(container: GpuContainer) -> None:
    container.environment["GPUMEM_LIMIT_BYTES"] = str(10**15)
    told = container.run(
        "import torch; torch.allocate(1); print(json.dumps([told(), gpu.total(0)]))"
    )
    assert framework(told[0])["caps"][0]["capBytes"] == told[1] // MIB * MIB


def test_a_machine_without_a_gpu_is_told_by_torch_alone(container: GpuContainer) -> None:
    container.environment["SIMULATED_CUDA_HAS_NO_DEVICE"] = "1"
    seen = container.run(
        "import torch\n"
        "try: torch.allocate(1)\n"
        "except RuntimeError as error: print(json.dumps(str(error)))\n"
    )
    assert "no CUDA GPUs are available" in seen
