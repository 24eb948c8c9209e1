"""`make demo`: what the product does, shown on a real API server.

A holder process owns the cluster, the installed chart and a simulated node; this process tells the
story with kubectl. With --keep the holder lives on until `python -m devcluster stop`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devcluster.binaries import find_binaries
from devcluster.demo_story import Stage, tell
from devcluster.failure import ClusterError
from devcluster.progress import say

ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    keep = parser.parse_args(arguments).keep
    try:
        return _demo(keep)
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _demo(keep: bool) -> int:
    find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="gpumem-demo-"))
    say("starting a control plane, installing the chart (about 15 s)")
    holder = _spawn_holder(folder, keep)
    try:
        ready = _wait(holder, folder)
        tell(Stage(Path(ready["kubeconfig"]), Path(ready["kubectl"]), ROOT))
    except BaseException:
        _end(holder)
        raise
    if not keep:
        _end(holder)
        return 0
    print(f"\nThe cluster goes on. To use it:\n  export KUBECONFIG={ready['kubeconfig']}")
    print(f"  {ready['kubectl']} get gmp,gmt,pods -A")
    print(f"To end it:\n  .venv/bin/python -m devcluster stop {ready['root']}")
    return 0


def _spawn_holder(folder: Path, keep: bool) -> subprocess.Popen[str]:
    """Its standard input is the sign of life of this process, unless it outlives it."""
    with (folder / "holder.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "devcluster.demo_holder", str(folder), *(["--keep"] * keep)],
            stdin=subprocess.DEVNULL if keep else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )


def _wait(holder: subprocess.Popen[str], folder: Path) -> dict[str, str]:
    assert holder.stdout is not None
    line = holder.stdout.readline()
    if not line:
        holder.wait()
        log = (folder / "holder.log").read_text()
        shutil.rmtree(folder, ignore_errors=True)
        raise ClusterError(f"The cluster of the demo did not come up:\n{log[-4000:]}")
    ready: dict[str, str] = json.loads(line)
    return ready


def _end(holder: subprocess.Popen[str]) -> None:
    if holder.stdin is not None:
        holder.stdin.close()
    else:
        holder.terminate()
    holder.wait(60)


if __name__ == "__main__":
    sys.exit(main())
