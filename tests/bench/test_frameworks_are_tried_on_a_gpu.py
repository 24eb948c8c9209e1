"""The harness of bench.real_gpu_frameworks, with simulated frameworks on simulated cards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_container import FRAMEWORKS, GIB, GpuContainer

ROOT = Path(__file__).parents[2]
TRIED = """
from bench.real_gpu_runs import container, pynvml, within
pynvml.nvmlInit()
with container() as made:
    good = made.run("import torch, time, json\\ntorch.allocate(7000)\\n"
                    "time.sleep(0.5); print(json.dumps(1))")
    bare = made.run("import torch, time, json\\ntorch.allocate(9000)\\n"
                    "time.sleep(0.5); print(json.dumps(1))", shim=False)
    print([check.good for done in (good, bare) for check in within("torch", done, {limit})])
    print(good.framework("torch")["notCapped"], bare.states)
"""


@pytest.mark.timeout(120)
def test_a_peak_is_seen_with_and_without_the_shim(tmp_path: Path) -> None:
    simulated = GpuContainer(tmp_path)
    # Frameworks are found where the harness itself would find them.
    paths = {"PYTHONPATH": f"{ROOT}:{FRAMEWORKS}"}
    environment = {**simulated.variables(str(ROOT)), **paths}
    done = subprocess.run(
        [sys.executable, "-c", TRIED.format(limit=8 * GIB)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[True, True, False, True]", "None []"]
