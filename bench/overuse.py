"""`python -m bench.overuse`: how soon something is done about a pod over its limit.

A real API server and the operator's processes; the sidecar's and the agent's own programs, on a
simulated driver. At any moment of the interval a program takes more than its pod's limit. The agent
is ordered to end it (Kill); the pod of a sidecar is evicted. Seen are the end of the process, and
the watch's event that the pod is being deleted.

The agent needs a cgroup for the program, and the sidecar a PID namespace: which of them can not be
had is told, and its rows are left out.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.costs import Cost, main, table, write
from bench.overuse_senders import agent, in_container_group, sidecar, why_no_group
from bench.overuse_team import Pod, Team, ended_at
from devcluster import Cluster
from devcluster.installation import Installation
from devcluster.sandbox import child_of, new_namespace, why_not
from devcluster.simulated_driver import Allocation, Driver, create_state, numbered_device
from devcluster.simulated_pod import tell_as_the_shim_would

_LIMIT_MIB = 8192
_WITHIN_MIB, _ABOVE_MIB = 4096, 9216
_SEED = 20_260_301


class Pace(NamedTuple):
    """In seconds, and how many pods one after the other."""

    interval: float
    grace: int
    pods: int


class Delay(NamedTuple):
    """Of one pod, in seconds."""

    after_grace: float
    """From the end of the grace period, as the pod's condition has it, until the action."""
    after_excess: float
    """From when the memory was taken, less the grace period: with the time until it was noticed.
    A grace period begins at a whole second, so up to one of these seconds is that."""


class Way(NamedTuple):
    """A sender, and the action by which it is measured."""

    sender: str
    action: str
    mode: str
    """Of `monitoring`."""
    most_seconds: Callable[[Pace], float]
    """From the end of the grace period."""
    why_not: Callable[[], str]
    delays: Callable[[Team, Path, Pace], Iterator[Delay]]


def measure(*, quick: bool = False) -> list[Cost]:
    """With the default interval and 10 pods for each sender (quick: 1 s and 2)."""
    pace = Pace(interval=1, grace=1, pods=2) if quick else Pace(interval=5, grace=2, pods=10)
    costs: list[Cost] = []
    with Cluster.start() as cluster, Installation.start(cluster) as operator:
        for way in WAYS:
            if reason := way.why_not():
                print(f"bench.overuse: {way.sender} is not measured: {reason}", file=sys.stderr)
            else:
                costs += _costs(way, pace, _measured(operator, way, pace))
    return costs


def _measured(operator: Installation, way: Way, pace: Pace) -> list[Delay]:
    enforcement = {
        "mode": "Enforce",
        "actions": [way.action],
        "gracePeriodSeconds": pace.grace,
    }
    spec = {
        "limits": {"default": f"{_LIMIT_MIB}Mi"},
        "monitoring": {"mode": way.mode},
        "enforcement": enforcement,
    }
    with Team.start(operator, f"bench-{way.sender}", spec) as team:
        state = create_state(team.folder / "driver", Driver((numbered_device(0),)))
        return list(way.delays(team, state, pace))


def _of_agent(team: Team, state: Path, pace: Pace) -> Iterator[Delay]:
    phases = Random(_SEED)
    with agent(team, state, interval_seconds=pace.interval):
        for number in range(pace.pods):
            with (
                _pod(team, number) as pod,
                Allocation(state, "0", _WITHIN_MIB) as program,
                in_container_group(program.pid, pod),
            ):
                team.wait_until_measured(pod)
                taken = _take(program, phases.random() * pace.interval)
                yield _delay(team, pod, pace, taken, ended_at(program.pid))


def _of_sidecar(team: Team, state: Path, pace: Pace) -> Iterator[Delay]:
    phases = Random(_SEED)
    for number in range(pace.pods):
        with (
            _pod(team, number) as pod,
            _program_of(team, state) as program,
            sidecar(
                team, state, pod, program=child_of(program.pid), interval_seconds=pace.interval
            ),
        ):
            team.wait_until_measured(pod)
            taken = _take(program, phases.random() * pace.interval)
            yield _delay(team, pod, pace, taken, team.deleted_at(pod))


WAYS: Sequence[Way] = (
    Way("agent", "Kill", "NodeAgent", lambda _: 1.0, why_no_group, _of_agent),
    Way("sidecar", "Evict", "Sidecar", lambda pace: pace.interval + 1, why_not, _of_sidecar),
)


@contextmanager
def _program_of(team: Team, state: Path) -> Iterator[Allocation]:
    """In a PID namespace of its own, and known as the pod's container."""
    with Allocation(state, "0", _WITHIN_MIB, prefix=new_namespace()) as program:
        inner = child_of(program.pid)
        tell_as_the_shim_would(team.run_folder, "main", inner, inside=program.pid_inside)
        yield program


@contextmanager
def _pod(team: Team, number: int) -> Iterator[Pod]:
    pod = team.pod(f"train-{number}")
    yield pod
    team.remove(pod)


def _take(program: Allocation, pause: float) -> float:
    """Take too much at a moment that no sample knows of; returns when that was."""
    time.sleep(pause)
    program.set(_ABOVE_MIB)
    return time.time()


def _delay(team: Team, pod: Pod, pace: Pace, taken: float, acted: float) -> Delay:
    return Delay(acted - team.over_since(pod) - pace.grace, acted - taken - pace.grace)


def _costs(way: Way, pace: Pace, delays: Sequence[Delay]) -> list[Cost]:
    after_grace = [delay.after_grace for delay in delays]
    after_excess = [delay.after_excess for delay in delays]
    name = f"{way.sender}, {way.action}"
    within = pace.interval + 1
    return [
        Cost(f"{name}: after the grace period, median", statistics.median(after_grace), "s"),
        Cost(f"{name}: after it, slowest", max(after_grace), "s", way.most_seconds(pace)),
        Cost(f"{name}: after the excess and a grace period, median",
             statistics.median(after_excess), "s"),
        Cost(f"{name}: after these, slowest", max(after_excess), "s", within),
    ]  # fmt: skip


def run(*, quick: bool, folder: Path) -> str:
    """Measure; returns the table and where the JSON is."""
    costs = measure(quick=quick)
    return f"{table('over the limit until the action', costs)}\n\n{write(costs, folder, 'overuse')}"


if __name__ == "__main__":
    sys.exit(main("overuse", __doc__, run))
