"""`make demo` from its own entry point, on its own cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.cluster


def run_demo(*options: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "devcluster.demo", *options],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_each_step_shows_what_it_promises() -> None:
    story = run_demo()
    for shown in (
        "171798691840",
        "init containers  -",
        "init containers  gpumem-shim, gpumem-sidecar",
        "garbage_collection_threshold:0.8,max_split_size_mb:128",
        "8Gi over 8 GPUs = 1Gi per GPU",
        "did you mean 64Gi?",
        "8GB",
        "growt_factor",
        "Insufficient nvidia.com/memory",
        "gpumemorytenant.gpumemory.dev/research",
        "chargedBytes: 154618822656",
    ):
        assert shown in story, f"{shown!r} is missing in:\n{story}"


def test_a_kept_cluster_answers_until_it_is_stopped() -> None:
    story = run_demo("--keep")
    kubeconfig = Path(re.findall(r"export KUBECONFIG=(\S+)", story)[0])
    folder = re.findall(r"devcluster stop (\S+)", story)[0]
    try:
        kubectl = re.findall(r"^  (\S*kubectl\S*) get", story, re.MULTILINE)[0]
        shown = subprocess.run(
            [kubectl, "--kubeconfig", kubeconfig, "get", "gmp", "-n", "research"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert "training" in shown.stdout, shown.stderr
    finally:
        subprocess.run([sys.executable, "-m", "devcluster", "stop", folder], cwd=ROOT, check=True)
    assert not Path(folder).exists()
