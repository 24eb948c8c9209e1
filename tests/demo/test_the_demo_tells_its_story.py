"""`make demo` from its own entry point, on its own cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_processes import Processes
from demo.running import ROOT, devcluster, run_demo
from devcluster.registry import find_record
from devcluster.sandbox import why_not
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def story() -> Iterator[str]:
    """Of one demo for all that is asked of it: it takes minutes."""
    told = run_demo("--keep")
    folder = re.findall(r"devcluster stop (\S+)", told)[0]
    yield told
    if Path(folder).parent.exists():
        devcluster("stop", folder)


@pytest.mark.skipif(bool(why_not()), reason=f"its last steps need PID namespaces: {why_not()}")
def test_each_step_shows_what_it_promises(story: str) -> None:
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
        "168Gi     240Gi   yes",
        "counted per node, not per card",
        "$ kubectl delete pod train -n research --force --grace-period=0",
        "makes 204Gi",
        "Programs and cards are\nsimulated",
        "unknown: DriverHidesMemory",
        "next step: use a newer driver or the node agent",
        "limit of trainer held by None: OverLimit",
        "UsingMoreThanCharged: True (HoldsMore): 1 pod holds more GPU memory than charged:"
        " research/greedy holds 12Gi, 4Gi above its charge of 8Gi.",
        "greedy Reclaim: Unsupported",
        "greedy Evict: Done",
        "cached Reclaim: Done",
        "Container trainer holds 518Mi of its limit of 8Gi",
        "From 1 to 2 replicas. Its pods hold 92% of their limits",
        "From 2 to 1 replica. Its pods hold 12% of their limits",
    ):
        assert shown in story, f"{shown!r} is missing in:\n{story}"
    about_cached = story.partition("involvedObject.name=cached")[2].partition("\n$ ")[0]
    told = r"^(\S+Z) +(OverLimit|Reclaiming) +Container trainer holds"
    times = re.findall(told, about_cached, re.M)
    assert [reason for _, reason in times] == ["OverLimit", "Reclaiming"]
    assert times == sorted(times), "the earlier one first"
    for since, said in re.findall(r"overuse: True \(\w+\) since (\S+), said at (\S+)", story):
        assert since <= said
    assert re.search(r"research +240Gi +204Gi", story), story
    assert re.search(
        r"^steady +3Gi +4Gi +None: NoFramework +live-node +vision +vision", story, re.M
    )
    assert re.search(r"^capped +2566Mi +4Gi +Framework +live-node +vision +vision$", story, re.M), (
        story
    )
    assert "cap of each process: 3Gi for its frameworks, beside a reserve of 1Gi" in story
    assert re.search(r"^research +research +240Gi +212Gi +28Gi +12Gi", story, re.M), story
    assert re.search(r"^vision +vision +80Gi +12Gi +68Gi +5638Mi \+ 1 unknown pod", story, re.M), (
        story
    )
    assert "\n\n\n" not in story
    commands = re.findall(r"^\$ (?:.*\\\n)*.*$", story, re.MULTILINE)
    assert len(commands) > 10
    assert [line for one in commands for line in one.splitlines() if len(line) > 120] == []


def test_a_kept_cluster_answers_until_it_is_stopped(story: str) -> None:
    folder = re.findall(r"devcluster stop (\S+)", story)[0]
    record = find_record(Path(folder))
    assert record.holder_pid is not None
    holder = Processes([record.holder_pid])
    try:
        assert f"{folder}\t{record.url}\tuntil stopped\n" in devcluster("list")
        environment = os.environ | dict(re.findall(r"(KUBE\w+)=(\S+)", story))
        [programs] = re.findall(r"export PATH=(\S+):\$PATH", story)
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        kubectl = "kubectl"
        hints = re.findall(r"^  (kubectl (?!delete).*)$", story, re.MULTILINE)
        answers = [run_hint(hint, environment) for hint in hints]
        assert re.search(r"^research +\S*training ", answers[0], re.M), answers[0]
        assert "steady" in answers[1], "kubectl finds the plugin"
        if not why_not():
            assert "there is room for 3 such pods" in story, "28Gi of the quota are left"
            await_own_pod(hints[-1], environment)
        upgrade = re.findall(r"^  \S+/helm upgrade (?:.*\\\n)*.*$", story, re.MULTILINE)[0]
        subprocess.run(["bash", "-ec", upgrade], cwd=ROOT, env=environment, check=True)
        wait_until_the_scheduler_counts_defaults(kubectl, environment)
    finally:
        devcluster("stop", folder)
    assert not Path(folder).parent.exists()
    assert holder.ended


def run_hint(hint: str, environment: dict[str, str]) -> str:
    shown = subprocess.run(
        ["bash", "-ec", hint], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def await_own_pod(why: str, environment: dict[str, str]) -> None:
    """The pod of the closing words is measured like those of the story."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "6Gi" not in (told := run_hint(why, environment)) or "live-node" not in told:
        assert time.monotonic() < deadline, told
        time.sleep(0.2)


def wait_until_the_scheduler_counts_defaults(kubectl: str, environment: dict[str, str]) -> None:
    """What the upgrade of the closing words turns on, seen on a pod that declares nothing."""
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    metadata = {"name": "undeclared", "namespace": "research"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    deadline = time.monotonic() + PATIENCE_SECONDS
    stored = ""
    while '"nvidia.com/memory": "8Gi"' not in stored:
        assert time.monotonic() < deadline, stored
        stored = subprocess.run(
            [kubectl, "create", "--dry-run=server", "-o", "json", "-f", "-"],
            input=json.dumps(pod | {"spec": {"containers": [container]}}),
            env=environment, capture_output=True, text=True,
        ).stdout  # fmt: skip
