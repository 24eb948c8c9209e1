"""Owns the cluster of the demo, see `demo_places`.

Its caller holds the other ends of standard input and output. One line comes out: where everything
is, or why it could not be had. The end of the input ends the cluster, unless the line `keep` came
before it: then the command does that the demo printed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from devcluster.binaries import find_binaries
from devcluster.demo_places import PLACES, Place
from devcluster.demo_room import OWN_POD, OWN_PODS
from devcluster.failure import ClusterError
from devcluster.upgrades import Upgrades

CHECK_SECONDS = 1.0
ROOT = Path(__file__).parent.parent


def main(place: str, folder: Path) -> int:
    signal.signal(signal.SIGTERM, _leave)
    try:
        _run(place, folder)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    except ClusterError as error:
        return _fail(str(error))
    except Exception:
        return _fail(traceback.format_exc())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(name: str, folder: Path) -> None:
    with PLACES[name](folder) as place:
        programs = find_binaries()
        _tell(
            kubeconfig=str(place.commands.kubeconfig),
            root=str(place.commands.root),
            node=place.node,
            runs_pods=place.runs_pods,
            no_live_use=place.no_live_use,
            kubectl=str(programs["kubectl"]),
            closing=_closing(place, helm=programs["helm"], kubectl=programs["kubectl"]),
        )
        _serve(place)


def _serve(place: Place) -> None:
    caller = sys.stdin.fileno()
    watched: list[int | Upgrades] = [caller, *([place.upgrades] if place.upgrades else [])]
    while True:
        ready = select.select(watched, [], [], CHECK_SECONDS)[0]
        if caller in ready:
            if not os.read(caller, 64):
                return
            place.keep()
            watched.remove(caller)
            _tell(kept=str(place.commands.root))
            if not place.needs_holder:
                return
        if place.upgrades is not None and place.upgrades in ready:
            place.upgrades.take_over()
        place.check()


def _closing(place: Place, *, kubectl: Path, helm: Path) -> str:
    """How to use a cluster that goes on."""
    kubeconfig = place.commands.kubeconfig
    lines = [
        "The cluster goes on. To use it:",
        f"  export KUBECONFIG={kubeconfig} KUBECACHEDIR={place.commands.root}/kubectl-cache",
        f"  export PATH={kubectl.parent}:{ROOT}/.venv/bin:$PATH",
        "  kubectl get gmp,gmt,pods -A",
        "  kubectl gpumem top -A",
        *([] if place.runs_pods or place.no_live_use else _OWN_POD),
        *(_RUNS_PODS if place.runs_pods else _RUNS_NO_POD).splitlines(),
        f"  {helm} upgrade gpu-memory-operator charts/gpu-memory-operator -n gpumem-system \\",
        "    --reuse-values --set scheduling.fillResource=Enabled",
        *([f"They write their logs to {place.logs}"] if place.logs else []),
        "To end it, with all its files:",
        f"  {place.how_to_end}",
    ]
    return "\n".join(lines)


_OWN_POD = (
    "A pod of your own that holds memory (6Gi; its annotation says how much). On live-node and in",
    f"the quota of research there is room for {OWN_PODS} such pods, each by a name of its own:",
    f"  kubectl create -f {OWN_POD}",
    "  kubectl gpumem why pod/mine -n research",
)
_RUNS_NO_POD = """\
Nothing runs on gpu-node, which has no kubelet: rollouts do not finish, and a pod goes only with
  kubectl delete pod NAME -n research --force --grace-period=0
The operator's processes run on this machine and follow an upgrade within seconds:"""
_RUNS_PODS = "The operator's pods are replaced by an upgrade that changes their settings:"


def _tell(**what: str | bool) -> None:
    print(json.dumps(what), flush=True)


def _fail(why: str) -> int:
    try:
        _tell(error=why)
    except BrokenPipeError:
        print(why, file=sys.stderr)
    return 1


def _leave(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second signal must not interrupt the clearing up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
