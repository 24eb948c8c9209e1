"""Launchers, workers and notebooks with the real programs: each process is a container's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frameworks.installed import Installed
from gpu_container import FRAMEWORKS
from shimmed import Shimmed

TELLS = """
import json, os
from gpumem_shim import process, state
def tell(folder):
    told = state.describe(process.own.told)
    told["pid"] = os.getpid()
    told["file"] = os.path.exists(os.path.join(*state.own_file()) + ".json")
    with open(os.path.join(folder, f"{os.getpid()}.told"), "w") as file:
        json.dump(told, file)
"""


def told_in(container: Shimmed) -> list[dict[str, Any]]:
    """What each process said of itself while it ran."""
    return [json.loads(path.read_text()) for path in sorted(container.folder.glob("*.told"))]


def check(told: dict[str, Any]) -> None:
    assert told["file"]
    assert told["limitBytes"] == 8 * 2**30
    assert [(one["name"], one["notCapped"]) for one in told["frameworks"]] == [
        ("torch", "NotStarted")
    ]


def test_every_rank_of_torchrun_is_told_and_has_its_part(torch: Installed) -> None:
    torch.environment["GPUMEM_PROCESSES_PER_GPU"] = "2"
    torch.module("tells", TELLS)
    script = torch.module("ranks", f"import tells, torch\ntells.tell({str(torch.folder)!r})\n")
    done = torch.process(
        "import sys\n"
        "from torch.distributed.run import main\n"
        f"main(['--standalone', '--nproc-per-node=2', {str(script)!r}])\n"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = told_in(torch)
    assert len({rank["pid"] for rank in ranks}) == 2
    for rank in ranks:
        check(rank)
        assert rank["processesPerGpu"] == 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader_are_told_and_work(torch: Installed, method: str) -> None:
    torch.module("tells", TELLS)
    torch.module(
        "numbers_to_load",
        "import tells, torch\n"
        "class Numbers(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 32\n"
        "    def __getitem__(self, n):\n"
        f"        tells.tell({str(torch.folder)!r})\n"
        "        return torch.full((4,), float(n))\n",
    )
    script = torch.module(
        "loads",
        "import json, torch, numbers_to_load\n"
        "if __name__ == '__main__':\n"
        "    loader = torch.utils.data.DataLoader(numbers_to_load.Numbers(), batch_size=8,\n"
        f"        num_workers=2, multiprocessing_context={method!r})\n"
        "    print(json.dumps(sum(batch.sum().item() for batch in loader)))\n",
    )
    assert torch.run(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')") == (
        4.0 * sum(range(32))
    )
    workers = told_in(torch)
    assert len(workers) == 2
    for worker in workers:
        check(worker)


NOTEBOOK = """
import json, os, sys
from jupyter_client.manager import KernelManager

manager = KernelManager(kernel_name="python3", connection_file=os.environ.pop("CONNECTION_FILE"))
environment = json.loads(os.environ.pop("KERNEL_ENVIRONMENT"))
manager.start_kernel(env=environment)
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=120)
said = []
def heard(message):
    content = message["content"]
    if message["header"]["msg_type"] in ("stream", "error"):
        said.append(content.get("text") or [content["ename"], content["evalue"]])
try:
    for cell in json.loads(os.environ["CELLS"]):
        client.execute_interactive(cell, timeout=120, output_hook=heard)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
print(json.dumps(said))
"""


def test_a_notebook_s_kernel_is_capped(ipykernel: Installed, tmp_path: Path) -> None:
    """The kernel is real; its torch and its card are simulated."""
    ipykernel.beside = (FRAMEWORKS,)
    cells = [
        "import torch",
        "torch.allocate(9 * 1024)",
        "torch.allocate(6 * 1024); print('fits')",
        "import json; from gpumem_shim import process, state; process.own.refresh()\n"
        "print(json.dumps(state.describe(process.own.told)['frameworks']))",
    ]
    kernel = ipykernel.variables(f"{ipykernel.shim}:{ipykernel.library}")
    ipykernel.environment |= {
        "CELLS": json.dumps(cells),
        "KERNEL_ENVIRONMENT": json.dumps({**kernel, "IPYTHONDIR": str(tmp_path / "ipython")}),
        "CONNECTION_FILE": str(tmp_path / "kernel.json"),
    }
    too_much, fits, told = ipykernel.run(NOTEBOOK, shim=False)
    assert too_much[0] == "OutOfMemoryError"
    assert fits == "fits\n"
    [torch] = json.loads(told)
    assert (torch["notCapped"], torch["capHits"]) == (None, 1)
