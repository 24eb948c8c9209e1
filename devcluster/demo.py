"""`make demo`: what the product does, shown on a real API server.

A holder process owns the cluster, the installed chart and a simulated node; this process tells the
story with kubectl. With --keep the holder lives on until `python -m devcluster stop`, else it ends
with this process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcluster.binaries import find_binaries
from devcluster.demo_places import PLACES
from devcluster.demo_room import with_room
from devcluster.demo_stage import Stage
from devcluster.demo_story import tell
from devcluster.failure import ClusterError, log_tail
from devcluster.kind import find_tools
from devcluster.progress import say

END_SECONDS = 60.0
ROOT = Path(__file__).parent.parent
USUAL_TIME = {
    "control-plane": "one to three minutes",
    "node": "a few minutes, and more where images and programs are built first",
    "kind": "a few minutes",
}
TARGET = {"control-plane": "demo", "node": "demo-node", "kind": "kind"}
"""Of `make`."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    parser.add_argument(
        "--on", choices=PLACES, default="control-plane", help="which cluster (%(default)s)"
    )
    options = parser.parse_args(arguments)
    # In a pipe too, each line is to be seen when it is said.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        return _demo(options.on, keep=options.keep)
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever reads has seen enough; there is nobody to tell, at the exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _demo(place: str, *, keep: bool) -> int:
    if place == "kind":
        find_tools()
    find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="gpumem-demo-"))
    holder = None
    try:
        holder = _spawn_holder(place, folder)
        say(f"starting the cluster and installing the chart ({USUAL_TIME[place]})")
        ready = _answer(holder, folder)
        stage = Stage(
            Path(ready["kubeconfig"]),
            Path(ready["kubectl"]),
            ROOT,
            no_live_use=ready["no_live_use"],
            node=ready["node"],
            runs_pods=ready["runs_pods"],
        )
        tell(stage)
        if keep:
            closing = with_room(ready["closing"], stage)
            _let_go(holder, folder)
            print(closing)
            return 0
        say(f"that was all; `make {TARGET[place]} KEEP=1` leaves the cluster running to try more")
    except BaseException:
        say("ending the cluster")
        _end(holder, folder)
        raise
    _end(holder, folder)
    return 0


def _spawn_holder(place: str, folder: Path) -> subprocess.Popen[str]:
    """Its standard input is the sign of life of this process."""
    with (folder / "holder.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "devcluster.demo_holder", place, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # A Ctrl-C at the terminal is for this process; the holder is told to end.
            start_new_session=True,
        )


def _answer(holder: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    assert holder.stdout is not None
    line = holder.stdout.readline()
    if not line:
        holder.wait()
        raise ClusterError(
            f"The process that holds the cluster ended with status {holder.returncode}."
            f" The end of its log:\n{log_tail(folder / 'holder.log')}"
        )
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise ClusterError(f"The cluster of the demo did not come up:\n{answer['error']}")
    return answer


def _let_go(holder: subprocess.Popen[str], folder: Path) -> None:
    """Have the cluster outlive this process, until `python -m devcluster stop`."""
    assert holder.stdin is not None
    holder.stdin.write("keep\n")
    holder.stdin.flush()
    _answer(holder, folder)


def _end(holder: subprocess.Popen[str] | None, folder: Path) -> None:
    """End the cluster, at whatever point of its life, and wait until its files are gone."""
    if holder is not None:
        holder.terminate()
        holder.wait(END_SECONDS)
    # The holder did this, unless it was terminated before it could.
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
