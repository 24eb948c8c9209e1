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

from devcluster.binaries import find_binaries
from devcluster.demo_stage import Stage
from devcluster.demo_story import tell
from devcluster.failure import ClusterError, log_tail
from devcluster.progress import say

ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devcluster.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    keep = parser.parse_args(arguments).keep
    # In a pipe too, each line is to be seen when it is said.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        return _demo(keep)
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever reads has seen enough; there is nobody to tell, at the exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _demo(keep: bool) -> int:
    find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="gpumem-demo-"))
    holder = _spawn_holder(folder)
    try:
        say("starting a control plane, installing the chart (about 15 s)")
        ready = _answer(holder, folder)
        no_live_use = ready["no_live_use"]
        tell(Stage(Path(ready["kubeconfig"]), Path(ready["kubectl"]), ROOT, no_live_use))
        if keep:
            _let_go(holder, folder)
            print(_CLOSING.format_map(ready))
            return 0
    except BaseException:
        say("ending the cluster")
        _end(holder, folder)
        raise
    _end(holder, folder)
    return 0


_CLOSING = """
The cluster goes on. To use it:
  export KUBECONFIG={kubeconfig} KUBECACHEDIR={root}/kubectl-cache
  {kubectl} get gmp,gmt,pods -A
Nothing runs on gpu-node, which has no kubelet: rollouts do not finish, and a pod goes only with
  {kubectl} delete pod NAME -n research --force --grace-period=0
The operator's processes run on this machine and follow an upgrade within seconds:
  {helm} upgrade gpu-memory-operator charts/gpu-memory-operator -n gpumem-system \\
    --reuse-values --set scheduling.fillResource=Enabled
They write their logs to {logs}
To end it, with all its files:
  .venv/bin/python -m devcluster stop {root}"""


def _spawn_holder(folder: Path) -> subprocess.Popen[str]:
    """Its standard input is the sign of life of this process."""
    with (folder / "holder.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "devcluster.demo_holder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # A Ctrl-C at the terminal is for this process; the holder is told to end.
            start_new_session=True,
        )


def _answer(holder: subprocess.Popen[str], folder: Path) -> dict[str, str]:
    assert holder.stdout is not None
    line = holder.stdout.readline()
    if not line:
        holder.wait()
        raise ClusterError(
            f"The process that holds the cluster ended with status {holder.returncode}."
            f" The end of its log:\n{log_tail(folder / 'holder.log')}"
        )
    answer: dict[str, str] = json.loads(line)
    if "error" in answer:
        raise ClusterError(f"The cluster of the demo did not come up:\n{answer['error']}")
    return answer


def _let_go(holder: subprocess.Popen[str], folder: Path) -> None:
    """Have the cluster outlive this process, until `python -m devcluster stop`."""
    assert holder.stdin is not None
    holder.stdin.write("keep\n")
    holder.stdin.flush()
    _answer(holder, folder)


def _end(holder: subprocess.Popen[str], folder: Path) -> None:
    """End the cluster, at whatever point of its life, and wait until its files are gone."""
    holder.terminate()
    holder.wait(60)
    # The holder did this, unless it was terminated before it could.
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
