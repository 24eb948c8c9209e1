"""The real vLLM, imported beside a real PyTorch without a GPU: its worker's share is lowered.

What the worker does on a GPU behind that is not run here; how it sizes itself by the share is.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from frameworks.installed import Installed

POOL = 7 * 2**30
PROGRAM = """
import json, inspect
import vllm.platforms as platforms
from vllm.platforms.interface import UnspecifiedPlatform
# It would load its libraries for the simulated card.
platforms._current_platform = UnspecifiedPlatform()
platforms._current_platform.device_type = "cpu"
from vllm import LLM
from vllm.config.cache import CacheConfig
from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.worker.gpu_worker import Worker
from vllm.v1.worker.utils import request_memory

class Snapshot:
    total_memory = free_memory = 143771 * 2**20

def share(*arguments):
    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    return AsyncEngineArgs.from_cli_args(parser.parse_args(arguments)).gpu_memory_utilization

def started(asked):
    worker = object.__new__(Worker)
    worker.cache_config = CacheConfig(gpu_memory_utilization=asked)
    try: worker.init_device()
    except AttributeError as error: said = str(error)
    requested = request_memory(Snapshot, worker.cache_config)
    return [worker.cache_config.gpu_memory_utilization, requested, said]

seen = {
    "signature": str(inspect.signature(Worker.init_device)),
    "defaults": [
        inspect.signature(LLM.__init__).parameters["gpu_memory_utilization"].default,
        EngineArgs("m").gpu_memory_utilization, CacheConfig().gpu_memory_utilization, share()],
    "spellings": [share("--gpu-memory-utilization", "0.5"), share("--gpu_memory_utilization=0.5"),
        share("--device-memory-utilization", "0.5")],
    "default": started(0.92),
    "lower": started(0.01),
}
print(json.dumps(seen))
"""


@pytest.fixture
def seen(vllm: Installed) -> Any:
    vllm.environment["GPUMEM_SERVER_ARGS"] = "Enabled"
    return vllm.run(PROGRAM)


def test_what_the_worker_asks_for_is_within_the_limit(vllm: Installed, seen: Any) -> None:
    share, requested, said = seen["default"]
    assert (share, requested <= POOL, requested > 0.99 * POOL) == (0.0498, True, True)
    assert "device_config" in said, "the worker's own start went on"
    assert seen["lower"][0] == 0.01
    [path] = vllm.states()
    [server] = json.loads(path.read_text())["servers"]
    assert (server["version"], server["applied"]) == (vllm.release.version, "0.01")

    assert seen["signature"] == "(self)"
    assert seen["defaults"] == [0.92] * 4
    assert seen["spellings"] == [0.5] * 3
