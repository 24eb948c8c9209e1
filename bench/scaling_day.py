"""Simulation: a day of load on 25 workloads that share a quota of 500 pods, in seconds.

    python -m bench.scaling_day [--svg FILE] [--png FILE]

Nothing here is measured. Demand follows the time of day, with noise, bursts and pods of which
nothing is known; the same day is played to the decisions of the controller, and to two plain
threshold scripts. The seed is fixed, so that the numbers are the same everywhere.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from bench.rasterized import png
from bench.scaling_picture import picture
from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.scaling.decision import decide
from gpumem_operator.scaling.facts import TargetFacts, TargetPod, TenantRoom
from gpumem_operator.scaling.memory import Memory
from gpumem_operator.scaling.ratio import TOLERANCE

STEP_SECONDS = 15
DAY_SECONDS = 24 * 3600
WORKLOADS = 25
LIMIT_MIB = 8192
QUOTA_PODS = 500
MOST_REPLICAS = 60
START_SECONDS = 90
"""From the wish for a pod until it takes its part of the load."""
TURN_SECONDS = 600
_MIB = 2**20
_SEED = 20_260_301


@dataclass
class Workload:
    """One workload of the day; its pods share its demand evenly."""

    peak_pods: float
    """Demand at its height, in pods that are exactly full."""
    hour: float
    """When that is."""
    starts: list[int] = field(default_factory=lambda: [-START_SECONDS])
    """When each of its pods was asked for, the oldest first."""
    burst: float = 0.0

    @property
    def replicas(self) -> int:
        return len(self.starts)

    def demand_mib(self, now: int, random: Random) -> float:
        """What it would hold if every pod had room for it."""
        angle = (now / 3600 - self.hour) / 24 * 2 * math.pi
        shape = (1 + math.cos(angle)) / 2
        if random.random() < STEP_SECONDS / (4 * 3600):
            self.burst = random.uniform(0.1, 0.35)
        self.burst *= 0.99
        return LIMIT_MIB * self.peak_pods * (0.08 + 0.92 * shape**2 + self.burst)

    def resize(self, replicas: int, now: int) -> None:
        """The youngest go first, as of a ReplicaSet."""
        del self.starts[replicas:]
        self.starts += [now] * (replicas - len(self.starts))


class Scaler(Protocol):
    """Who sets replicas."""

    def desired(
        self, number: int, pods: Sequence[TargetPod], *, room_pods: int, now: int
    ) -> int: ...


class Policy:
    """The controller's decisions, with the defaults of `spec.scaling`."""

    def __init__(self) -> None:
        reference = {"kind": "Deployment", "name": "serve"}
        self._target = ScalingTarget.model_validate(
            {"targetRef": reference, "maxReplicas": MOST_REPLICAS}
        )
        self._memories = [Memory()] * WORKLOADS

    def desired(self, number: int, pods: Sequence[TargetPod], *, room_pods: int, now: int) -> int:
        room = TenantRoom("all", room_pods * LIMIT_MIB * _MIB, LIMIT_MIB * _MIB)
        facts = TargetFacts(len(pods), tuple(pods), (room,))
        made = decide(self._target, facts, self._memories[number], now=now)
        self._memories[number] = made.memory
        return made.desired


@dataclass(frozen=True)
class Threshold:
    """A plain script: one more above 80 % of what it can see, and perhaps one fewer below."""

    below: float | None = None

    def desired(self, number: int, pods: Sequence[TargetPod], *, room_pods: int, now: int) -> int:  # noqa: ARG002
        seen = [pod.used_bytes / (LIMIT_MIB * _MIB) for pod in pods if pod.used_bytes is not None]
        if not seen:
            return len(pods)
        use = sum(seen) / len(seen)
        if use > 0.8:
            return min(len(pods) + 1, MOST_REPLICAS)
        return max(1, len(pods) - 1) if self.below is not None and use < self.below else len(pods)


@dataclass(frozen=True)
class Moment:
    """What one step showed, over all workloads."""

    seconds: int
    replicas: int
    demand_pods: float
    percent: float
    """Held by started pods, of their limits."""
    full_workloads: int
    """Whose pods hold their limits and have no room for the rest of the demand."""


@dataclass(frozen=True)
class Day:
    """What became of one scaler."""

    name: str
    moments: tuple[Moment, ...]
    changes: int
    turns: int
    """Changes in the other direction than the one before, within ten minutes of it."""
    oscillations: int
    """Those of them for which the demand gives no reason: it has not moved their way by more than
    the tolerance since the change before. The scaler answers itself there, or noise."""

    @property
    def row(self) -> str:
        hours = sum(moment.replicas for moment in self.moments) * STEP_SECONDS / 3600
        full = sum(moment.full_workloads for moment in self.moments) * STEP_SECONDS / 60
        most = max(moment.replicas for moment in self.moments)
        past = sum(moment.replicas > QUOTA_PODS for moment in self.moments) * STEP_SECONDS / 60
        return (
            f"| {self.name} | {hours:,.0f} | {most} | {past:,.0f} | {full:,.0f} | {self.changes:,}"
            f" | {self.turns:,} | {self.oscillations:,} |"
        )


HEADER = (
    "| | pod hours | most pods asked for | minutes past the quota | minutes that workloads were"
    " full, added up | changes | turns within 10 minutes | of these without a change of demand |\n"
    "|---|---|---|---|---|---|---|---|"
)


class _Change(NamedTuple):
    """Of the replicas of one workload."""

    seconds: int
    way: int
    """1 for more, -1 for fewer."""
    demand_mib: float

    def turns(self, last: "_Change") -> bool:
        return self.way == -last.way and self.seconds - last.seconds <= TURN_SECONDS

    def follows_demand(self, last: "_Change") -> bool:
        """Whether the demand has moved the same way since the last change, by more than what a
        decision tolerates."""
        return self.way * (self.demand_mib / last.demand_mib - 1) > TOLERANCE


def play(name: str, scaler: Scaler) -> Day:
    """The day as one scaler goes through it."""
    random = Random(_SEED)
    workloads = [Workload(random.uniform(8, 28), random.gauss(14, 2.5)) for _ in range(WORKLOADS)]
    moments, last = [], [_Change(-DAY_SECONDS, 0, 0.0)] * WORKLOADS
    changes = turns = oscillations = 0
    for now in range(0, DAY_SECONDS, STEP_SECONDS):
        demands = [one.demand_mib(now, random) for one in workloads]
        loads = [
            _used_mib(one, demand, now) for one, demand in zip(workloads, demands, strict=True)
        ]
        moments.append(_moment(now, workloads, demands, loads))
        for number, one in enumerate(workloads):
            pods = tuple(_pods(one, loads[number], now, random))
            room = QUOTA_PODS - sum(other.replicas for other in workloads)
            desired = scaler.desired(number, pods, room_pods=room, now=now)
            way = (desired > one.replicas) - (desired < one.replicas)
            if way:
                change = _Change(now, way, demands[number])
                changes += 1
                turned = change.turns(last[number])
                turns += turned
                oscillations += turned and not change.follows_demand(last[number])
                last[number] = change
                one.resize(desired, now)
    return Day(name, tuple(moments), changes, turns, oscillations)


def _started(workload: Workload, now: int) -> int:
    return sum(now - start >= START_SECONDS for start in workload.starts)


def _used_mib(workload: Workload, demand: float, now: int) -> float:
    """Of each started pod."""
    return min(LIMIT_MIB, demand / max(_started(workload, now), 1))


def _pods(workload: Workload, used: float, now: int, random: Random) -> Iterator[TargetPod]:
    for start in workload.starts:
        if now - start < START_SECONDS:
            yield TargetPod("serve", started=False, limit_bytes=LIMIT_MIB * _MIB)
            continue
        seen = min(LIMIT_MIB, int(used * random.uniform(0.96, 1.04)))
        unknown = "Silent" if random.random() < 0.02 else None
        held = None if unknown else seen * _MIB
        yield TargetPod("serve", True, LIMIT_MIB * _MIB, held, unknown)


def _moment(
    now: int, workloads: Sequence[Workload], demands: Sequence[float], loads: Sequence[float]
) -> Moment:
    started = [_started(one, now) for one in workloads]
    held = sum(count * load for count, load in zip(started, loads, strict=True))
    return Moment(
        seconds=now,
        replicas=sum(one.replicas for one in workloads),
        demand_pods=sum(demands) / LIMIT_MIB,
        percent=100 * held / (LIMIT_MIB * sum(started)),
        full_workloads=sum(load >= LIMIT_MIB for load in loads),
    )


def days() -> list[Day]:
    """The same day for each scaler."""
    return [
        play("policy (target 80 %)", Policy()),
        play("script: one more above 0.8", Threshold()),
        play("script: one more above 0.8, one fewer below 0.7", Threshold(0.7)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A simulated day of scaling.")
    parser.add_argument("--svg", type=Path, help="also write the day as a picture")
    parser.add_argument("--png", type=Path, help="the same, drawn by rsvg-convert")
    arguments = parser.parse_args()
    began = time.process_time()
    found = days()
    print(HEADER)
    for day in found:
        print(day.row)
    print(f"\n{time.process_time() - began:.0f} s of processor time")
    drawn = picture(found, quota=QUOTA_PODS)
    if arguments.svg is not None:
        arguments.svg.write_text(drawn, encoding="utf-8")
    if arguments.png is not None:
        arguments.png.write_bytes(png(drawn))


if __name__ == "__main__":
    main()
