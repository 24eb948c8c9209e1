"""The whole way of an order: leader, the sidecar's own program, shim, and a framework's cache."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.sandbox import child_of, inside, new_namespace
from gpu_container import FRAMEWORKS, GIB, GpuContainer
from gpumem_operator import names
from intake.real_sidecar import running
from intake.senders import POLICY, Cast
from patience import PATIENCE_SECONDS
from report_builders import Raw
from simulated_driver.node import needs_namespaces

pytestmark = [pytest.mark.cluster, needs_namespaces]
FILLS_ITS_CACHE = """
import sys, torch
torch.allocate(9216)
print("filled", flush=True)
sys.stdin.read()
"""


@contextmanager
def training(container: GpuContainer) -> Iterator[int]:
    """A program in a PID namespace of its own that holds 9 GiB, nearly all of it cached."""
    command = [*new_namespace(), sys.executable, "-B", "-c", FILLS_ITS_CACHE]
    path = f"{container.shim}:{container.library}:{FRAMEWORKS}"
    variables = container.variables(path)
    process = subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "filled\n"
        yield child_of(process.pid)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=PATIENCE_SECONDS)


def overuse(cast: Cast) -> Raw:
    conditions = cast.get("pod", "train")["status"].get("conditions") or ()
    return next((one for one in conditions if one["type"] == names.OVERUSE_CONDITION), {})


def test_a_pod_over_its_limit_gives_its_cache_back_and_lives(cast: Cast, tmp_path: Path) -> None:
    enforcement = {"mode": "Enforce", "actions": ["Reclaim", "Evict"], "gracePeriodSeconds": 1}
    patch = json.dumps({"spec": {"enforcement": enforcement}})
    cast.kubectl("patch", "gpumemorypolicy", POLICY, "--type=merge", "-p", patch)
    uid = cast.pod("train")
    # Nothing holds it back, as if the framework's cap had been lifted by the program.
    container = GpuContainer(tmp_path, limit=None)
    with training(container) as pid:
        program = ("env", f"GPUMEM_POD_UID={uid}", sys.executable, "-m", "gpumem_sidecar")
        command = [*inside(pid), *program]
        driver = tmp_path / "driver"
        with running(driver, cast, tmp_path, token=cast.token("train"), command=command):
            cast.until(lambda: overuse(cast).get("status") == "True")
            cast.until(lambda: overuse(cast).get("status") == "False")
            lines = cast.until(
                lambda: cast.get("gpumemorypolicy", POLICY)["status"].get("recentActions")
            )
            orders = list(container.run_folder.rglob("*.order"))
    [line] = lines
    assert (line["pod"], line["action"], line["result"]) == ("train", "Reclaim", "Done")
    assert line["limitBytes"] == 8 * GIB
    assert line["usedBytes"] < GIB
    assert orders == [], "an order that was answered is taken back"
    assert "deletionTimestamp" not in cast.get("pod", "train")["metadata"]
