"""vLLM's share of the card is lowered in the process that sizes its cache, however it was started.

vLLM is a stand-in here; tests/frameworks imports the real one.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpu_container import GIB, GpuContainer
from gpumem_shim.servers import lower_of
from patience import PATIENCE_SECONDS

POOL = 7 * GIB
"""A limit of 8Gi without the reserve of 1Gi."""
TOTAL = 143771 * 2**20
"""What a simulated card has; see `numbered_device`."""

WAYS = {
    "vllm serve": ["-c", "from vllm.entrypoints.cli.main import main; main()", "serve", "m"],
    "api_server": ["-m", "vllm.entrypoints.openai.api_server"],
    "LLM": ["-c", "import vllm; vllm.LLM('m')"],
    "EngineArgs": [
        "-c",
        "import vllm; from vllm.v1.engine import core;"
        "core.start(vllm.EngineArgs('m').create_engine_config())",
    ],
}


@pytest.fixture
def container(tmp_path: Path) -> GpuContainer:
    made = GpuContainer(tmp_path)
    made.environment["GPUMEM_SERVER_ARGS"] = "Enabled"
    return made


def start(container: GpuContainer, *arguments: str) -> Any:
    done = subprocess.run(
        [container.python, "-B", *arguments],
        env=container.variables(f"{container.shim}:{container.library}"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def library(container: GpuContainer, arguments: str) -> Any:
    return start(container, "-c", f"import vllm; vllm.LLM('m', {arguments})")


def server(outcome: Any) -> Any:
    [found] = outcome["told"]["servers"]
    return found


@pytest.mark.parametrize("method", ["fork", "spawn", "in the same process"])
@pytest.mark.parametrize("way", WAYS)
def test_its_cache_fits_into_the_limit(container: GpuContainer, way: str, method: str) -> None:
    if method == "in the same process":
        container.environment["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    else:
        container.environment["VLLM_WORKER_MULTIPROC_METHOD"] = method
    if method == "spawn":
        container.module("started", f"if __name__ == '__main__': exec({WAYS[way][1]!r})")
    arguments = WAYS[way]
    if method == "spawn" and arguments[0] == "-c":
        # A spawned child imports its parent's main module, so that one must be a file.
        arguments = [str(container.library / "started.py"), *arguments[2:]]

    outcome = start(container, *arguments)

    assert "error" not in outcome
    assert 0.99 * POOL < outcome["requestedBytes"] <= POOL
    assert server(outcome) == {
        "name": "vllm",
        "version": "0.33.0",
        "argument": "gpu_memory_utilization",
        "asked": "0.92",
        "applied": "0.0498",
        "reason": None,
    }


def test_without_it_the_cap_fails_the_cache(container: GpuContainer) -> None:
    del container.environment["GPUMEM_SERVER_ARGS"]
    outcome = library(container, "")
    assert outcome["error"] == "OutOfMemoryError"
    assert outcome["told"]["servers"] == []


@pytest.mark.parametrize("asked", ["0.01", "0.0498", "0.001"])
def test_a_lower_one_of_the_program_stays(container: GpuContainer, asked: str) -> None:
    outcome = library(container, f"gpu_memory_utilization={asked}")
    assert (server(outcome)["asked"], server(outcome)["applied"]) == (asked, asked)
    assert outcome["requestedBytes"] == math.ceil(TOTAL * float(asked))


@pytest.mark.parametrize("asked", ["float('nan')", "'a lot'", "'0.9'", "None", "10**400"])
def test_what_can_not_be_compared_counts_as_above(container: GpuContainer, asked: str) -> None:
    outcome = library(container, f"gpu_memory_utilization={asked}")
    assert "error" not in outcome
    assert server(outcome)["applied"] == "0.0498"


@pytest.mark.parametrize("asked", [0, -1, 0.0, "-inf", "0.01"])
def test_what_is_lower_is_left_as_it_is_for_vllm_to_judge(asked: object) -> None:
    assert lower_of(asked, 0.05) is asked


def test_announced_processes_share_the_limit(container: GpuContainer) -> None:
    container.environment["GPUMEM_PROCESSES_PER_GPU"] = "2"
    assert library(container, "")["requestedBytes"] <= 3 * GIB


def test_the_share_is_within_the_limit_on_every_visible_card(tmp_path: Path) -> None:
    container = GpuContainer(tmp_path, gpus=2)
    container.environment["GPUMEM_SERVER_ARGS"] = "Enabled"
    assert library(container, "")["requestedBytes"] <= POOL


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"GPUMEM_LIMIT_BYTES": ""}, "NoLimit"),
        ({"GPUMEM_LIMIT_BYTES": str(GIB)}, "TooNear"),
        ({"SIMULATED_CUDA_HIDES_THE_TOTAL": "1", "SIMULATED_TOTAL_BYTES": str(TOTAL)}, "NoTotal"),
    ],
)
def test_why_it_is_not_lowered_is_told(
    container: GpuContainer, variables: dict[str, str], reason: str
) -> None:
    container.environment |= variables
    told = server(library(container, ""))
    assert (told["applied"], told["reason"]) == ("0.92", reason)


def test_a_cache_size_in_bytes_goes_before_the_share_and_that_is_told(
    container: GpuContainer,
) -> None:
    outcome = library(container, f"kv_cache_memory_bytes={9 * GIB}")
    assert server(outcome)["reason"] == "CacheSizeGiven"
    assert outcome["error"] == "OutOfMemoryError", "the cap holds all the same"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "class Worker: pass",
        "class Worker:\n    def init_device(self): self.cache_config = None",
        "class Worker:\n"
        "    cache_config = property(lambda self: 1 / 0)\n"
        "    def init_device(self): pass",
    ],
)
def test_another_release_than_we_know_works_as_without_the_shim(
    container: GpuContainer, source: str
) -> None:
    folder = container.library / "vllm" / "v1" / "worker"
    container.module("gpu_worker", source, folder=folder)
    for package in (folder, folder.parent, folder.parent.parent):
        container.module("__init__", "", folder=package)
    done = start(
        container,
        "-c",
        "from vllm.v1.worker import gpu_worker\n"
        "if hasattr(getattr(gpu_worker, 'Worker', None), 'init_device'):\n"
        "    gpu_worker.Worker().init_device()\n"
        "print('\"fine\"')",
    )
    assert done == "fine"


def test_a_forked_child_does_not_claim_its_parent_s_share(container: GpuContainer) -> None:
    container.environment["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    done = container.run(
        "import vllm, os\n"
        "vllm.LLM('m')\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    print(json.dumps(state.describe(process.own.told)['servers']), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    assert done[1] == []
