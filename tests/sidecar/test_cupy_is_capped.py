"""The pools of a simulated CuPy on simulated cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_container
from gpu_container import GIB, MIB, GpuContainer


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    made = GpuContainer(tmp_path)
    made.environment["CUPY_GPU_MEMORY_LIMIT"] = str(7 * GIB)
    return made


def most(container: GpuContainer, before: str = "") -> int:
    return gpu_container.most(container, "cupy", "pool = cupy.get_default_memory_pool()\n" + before)


def framework(told: Any, name: str = "cupy") -> Any:
    return gpu_container.told_of(told, name)


def test_an_import_starts_nothing(container: GpuContainer) -> None:
    told = container.run(
        "import cupy\nassert not gpu.started\nprint(json.dumps(state.describe(process.own.told)))"
    )
    assert (framework(told)["notCapped"], framework(told)["caps"]) == ("NotStarted", [])


@pytest.mark.parametrize(
    "raised",
    [
        "",
        "pool.set_limit(0)",
        "pool.set_limit()",
        "pool.set_limit(size=2**40)",
        "pool.set_limit(fraction=1.0)",
        "cupy.allocate(1); pool.set_limit(0)",
        "cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)",
        "os.environ['CUPY_GPU_MEMORY_LIMIT'] = '0'",
        "os.environ['GPUMEM_LIMIT_BYTES'] = str(2**40)",
    ],
)
def test_the_program_gets_the_cap_and_can_not_raise_it(
    container: GpuContainer, raised: str
) -> None:
    assert 7 * 1024 - 32 <= most(container, raised) <= 7 * 1024


@pytest.mark.parametrize("lower", ["pool.set_limit(2**30)", "pool.set_limit(fraction=0.00713)"])
def test_a_lower_limit_of_the_program_stays(container: GpuContainer, lower: str) -> None:
    assert 1000 <= most(container, f"{lower}; refresh()") <= 1024


def test_its_errors_are_its_own(container: GpuContainer) -> None:
    seen = container.run(
        "import cupy\n"
        "pool = cupy.get_default_memory_pool()\n"
        "try: pool.set_limit(1, 0.5)\n"
        "except ValueError as error: print(json.dumps(str(error)))\n"
        "print(json.dumps([pool.set_limit.__doc__, repr(type(pool))]))\n"
    )
    assert seen == [
        "size and fraction cannot be specified at the same time",
        [
            "Sets the upper limit of memory allocation of the current device.",
            "<class 'cupy.MemoryPool'>",
        ],
    ]


def test_two_pools_share_one_cap(container: GpuContainer) -> None:
    told = container.run(
        "import cupy\n"
        "other = cupy.cuda.MemoryPool()\n"
        "for n in range(6): other.malloc(n * 2**30)\n"
        "refresh()\n"
        "taken = 0\n"
        "try:\n"
        "    while True: cupy.allocate(taken + 16); taken += 16; refresh()\n"
        "except cupy.OutOfMemoryError: pass\n"
        "print(json.dumps([taken, told()]))\n"
    )
    assert told[0] <= 2048
    assert told[1]["gpus"][0]["bytes"] <= 8 * GIB
    assert framework(told[1])["capHits"] == 1


def test_a_pool_at_its_limit_gets_at_once_what_the_others_do_not_hold(
    container: GpuContainer,
) -> None:
    told = container.run(
        "import cupy\n"
        "cupy.allocate(100)\n"
        "other = cupy.cuda.MemoryPool()\n"
        "other.malloc(7000 * 2**20)\n"
        "print(json.dumps(told()))\n"
    )
    [cap] = framework(told)["caps"]
    assert cap["capBytes"] <= 7 * GIB
    assert framework(told)["capHits"] == 0


def test_no_pool_at_all_is_told(container: GpuContainer) -> None:
    told = container.run(
        "import cupy\n"
        "cupy.cuda.set_allocator(None)\n"
        "cupy.allocate(10 * 1024)\n"
        "print(json.dumps(told()))\n"
    )
    assert framework(told)["notCapped"] == "AllocatorHasNoCap"


def test_a_pool_that_is_given_up_after_its_use_has_no_cap(container: GpuContainer) -> None:
    told = container.run(
        "import cupy\ncupy.allocate(1)\ncupy.cuda.set_allocator(None)\nprint(json.dumps(told()))\n"
    )
    assert (framework(told)["notCapped"], framework(told)["caps"]) == ("AllocatorHasNoCap", [])


def test_while_a_thread_allocates_past_all_pools_there_is_no_cap(container: GpuContainer) -> None:
    meanwhile, later = container.run(
        "import cupy, threading; cupy.allocate(1)\n"
        "def look(): print(json.dumps(told()))\n"
        "with cupy.cuda.using_allocator():\n"
        "    cupy.allocate(10)\n"
        "    other = threading.Thread(target=look); other.start(); other.join()\n"
        "look()\n"
    )
    assert (framework(meanwhile)["notCapped"], framework(meanwhile)["caps"]) == (
        "AllocatorHasNoCap",
        [],
    )
    assert (framework(later)["notCapped"], len(framework(later)["caps"])) == (None, 1)


def test_a_pool_of_its_own_for_a_thread_is_capped(container: GpuContainer) -> None:
    told = container.run(
        "import cupy; cupy.allocate(1)\n"
        "with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc): cupy.allocate(10)\n"
        "print(json.dumps(told()))\n"
    )
    assert framework(told)["notCapped"] is None


def test_a_second_thread_waits_until_the_first_ones_cap_is_in_force(
    container: GpuContainer,
) -> None:
    container.environment["CUPY_GPU_MEMORY_LIMIT"] = "0"
    took = container.run(
        "import cupy, threading\n"
        "pool, started = cupy.get_default_memory_pool(), process.own.started\n"
        "begun, second = threading.Event(), threading.Event()\n"
        "def slow(*use):\n"
        "    begun.set(); second.wait(0.5)\n"
        "    return started(*use)\n"
        "process.own.started = slow\n"
        "first = threading.Thread(target=pool.malloc, args=(1024,)); first.start(); begun.wait()\n"
        "took = True\n"
        "try: pool.malloc(9 * 2**30)\n"
        "except cupy.OutOfMemoryError: took = False\n"
        "first.join(); print(json.dumps(took))\n"
    )
    assert took is False


class TestBesideTorch:
    """Two frameworks in one process never have more than one cap together."""

    def test_the_caps_add_up_to_the_pool_and_follow_the_need(self, container: GpuContainer) -> None:
        one, both, later = container.run(
            "import torch, cupy\n"
            "torch.allocate(1024); print(json.dumps(told()))\n"
            "cupy.allocate(512); print(json.dumps(told()))\n"
            "torch.allocate(3 * 1024)\n"
            "print(json.dumps(told()))\n"
        )
        assert caps(one) == {"torch": pytest.approx(7 * GIB, abs=MIB)}
        assert sum(caps(both).values()) <= 7 * GIB
        assert caps(both)["cupy"] == pytest.approx(512 * MIB + 5.5 * GIB / 2, abs=2 * MIB)
        assert caps(later)["torch"] > caps(both)["torch"]
        assert sum(caps(later).values()) <= 7 * GIB

    def test_one_that_comes_to_a_full_pool_gets_nothing_of_the_others(
        self, container: GpuContainer
    ) -> None:
        told = container.run(
            "import torch, cupy\n"
            "cupy.allocate(7 * 1024)\n"
            "try: torch.allocate(16)\n"
            "except torch.OutOfMemoryError: print(json.dumps(told()))\n"
        )
        assert sum(caps(told).values()) <= 7 * GIB + 1

    def test_what_nvml_sees_stays_inside_the_limit(self, container: GpuContainer) -> None:
        held = container.run(
            "import torch, cupy\n"
            "for n in range(1, 200):\n"
            "    try: torch.allocate(n * 100)\n"
            "    except torch.OutOfMemoryError: pass\n"
            "    try: cupy.allocate(n * 100)\n"
            "    except cupy.OutOfMemoryError: pass\n"
            "print(gpu.held())\n"
        )
        assert 7 * GIB < held <= 8 * GIB


def caps(told: Any) -> dict[str, int]:
    return {
        one["name"]: sum(cap["capBytes"] for cap in one["caps"])
        for one in told["frameworks"]
        if one["caps"]
    }
