"""Each GPU and each process of a simulated torch has a cap of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpu_container import MIB, GpuContainer


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    return GpuContainer(tmp_path)


def framework(told: Any) -> Any:
    return next(one for one in told["frameworks"] if one["name"] == "torch")


class TestSeveralGpus:
    @pytest.fixture
    def container(self, tmp_path: Path) -> GpuContainer:
        return GpuContainer(tmp_path, gpus=3)

    def test_only_the_selected_one_gets_a_context_and_a_cap(self, container: GpuContainer) -> None:
        told, contexts = container.run(
            "import torch\n"
            "torch.cuda.set_device(1)\n"
            "try: torch.allocate(9 * 1024); print('false')\n"
            "except torch.OutOfMemoryError: pass\n"
            "print(json.dumps(told()))\n"
            "print(json.dumps([gpu.has_context(n) for n in range(3)]))\n"
        )
        assert [gpu["uuid"] for gpu in told["gpus"]] == [framework(told)["caps"][0]["gpu"]]
        assert contexts == [False, True, False]

    def test_one_that_was_used_without_being_selected_is_found(
        self, container: GpuContainer
    ) -> None:
        told, current = container.run(
            "import torch\n"
            "torch.allocate(64, 2)\n"
            "found = told()\n"
            "while len(found['frameworks'][0]['caps']) < 1: time.sleep(0.01); found = told()\n"
            "print(json.dumps(found)); print(torch.cuda.current_device())\n"
        )
        assert len(framework(told)["caps"]) == 1
        assert current == 0


class TestForks:
    def test_a_worker_that_is_forked_before_cuda_has_a_cap_of_its_own(
        self, container: GpuContainer
    ) -> None:
        told = container.run(
            "import torch\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    try: torch.allocate(9 * 1024)\n"
            "    except torch.OutOfMemoryError: print(json.dumps(told()), flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0)\n"
        )
        assert framework(told)["capHits"] == 1

    @pytest.mark.timeout(60)
    def test_a_worker_of_a_process_that_measures_measures_as_well(
        self, container: GpuContainer
    ) -> None:
        held = container.run(
            "import cupy, torch\n"
            "from gpumem_shim import thread\n"
            "thread.start(process.own)\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    torch.allocate(64)\n"
            "    while not process.own.told.gpus: time.sleep(0.01)\n"
            "    [held] = process.own.told.gpus.values()\n"
            "    print(held.bytes, flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0)\n"
        )
        assert held == (64 + 518) * MIB

    def test_a_worker_that_is_forked_after_cuda_claims_no_cap(
        self, container: GpuContainer
    ) -> None:
        told = container.run(
            "import torch\n"
            "torch.allocate(64)\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    print(json.dumps(told()), flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0)\n"
        )
        assert framework(told)["caps"] == []
        assert (framework(told)["notCapped"], told["gpus"]) == ("NotStarted", [])

    @pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
    def test_workers_of_multiprocessing_end_as_without_the_shim(
        self, container: GpuContainer, method: str
    ) -> None:
        container.module(
            "workers",
            "import torch\n"
            "def most(_):\n"
            "    try:\n"
            "        torch.allocate(9 * 1024)\n"
            "    except torch.OutOfMemoryError:\n"
            "        torch.allocate(1024)\n"
            "        return True\n",
        )
        seen = container.run(
            "import multiprocessing, workers\n"
            f"with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
            "    print(json.dumps(pool.map(workers.most, [0, 0])))\n"
        )
        assert seen == [True, True]
