"""Who holds a limit, in series, statuses, Events and at the command line of a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from intake.people import Person
from intake.senders import POLICY, Cast
from report_builders import GIB, GPU, MIB, Raw, process, raw_report

pytestmark = pytest.mark.cluster

MAIN = 100


class Sidecar:
    """Tells of one pod, one report after the other."""

    def __init__(self, cast: Cast, pod: str) -> None:
        self._cast = cast
        self.uid = cast.pod(pod)
        self._token = cast.token(pod)
        self._sequence = 0

    def tells(self, *processes: Raw) -> None:
        self._sequence += 1
        report = raw_report(*processes, sequence=self._sequence)
        reply = self._cast.send(self._token, report)
        assert reply.status == 200, reply

    def capped(self, *, hits: int = 0, cap: int = 7 * GIB, held: int = 3 * GIB) -> Raw:
        """A process of torch under a shim."""
        torch = {
            "name": "torch",
            "version": "2.9.0",
            "caps": [{"gpu": GPU, "capBytes": cap}],
            "notCapped": None,
            "capHits": hits,
            "reclaim": "Supported",
        }
        vllm = {
            "name": "vllm",
            "version": "0.33.0",
            "argument": "gpu_memory_utilization",
            "asked": "0.92",
            "applied": "0.0498",
            "reason": None,
        }
        shim = {
            "frameworks": [torch],
            "servers": [vllm],
            "limitBytes": 8 * GIB,
            "contextReserveBytes": GIB,
        }
        return process(held, pod=self.uid, pid=MAIN) | {"startTime": 5, "shim": shim}

    def bare(self, pid: int, held: int = 512 * MIB) -> Raw:
        """A process of another program."""
        return process(held, pod=self.uid, pid=pid) | {"startTime": 6}


@pytest.fixture
def sidecar(cast: Cast) -> Sidecar:
    return Sidecar(cast, "train")


def series(cast: Cast, name: str, **labels: str) -> list[float]:
    return cast.series(name, namespace=cast.namespace, **labels)


def until_held_by(cast: Cast, enforcer: str) -> None:
    cast.until(lambda: series(cast, "gpumem_used_bytes", enforced_by=enforcer))


def counted(cast: Cast) -> dict[str, int]:
    """Pods by who holds their limit, in the policy's status."""
    status = cast.get("gpumemorypolicy", POLICY).get("status") or {}
    return {kind: count for kind, count in (status.get("enforcers") or {}).items() if count}


def until_counted(cast: Cast, hits: int) -> None:
    where = {"pod": "train", "container": "main", "framework": "torch"}
    cast.until(lambda: series(cast, "gpumem_cap_hits_total", **where) == [hits])


def until_looked_at(cast: Cast, used: int) -> None:
    """Series are as new as the last report; statuses and Events follow the leader's own rhythm."""
    cast.until(lambda: cast.memory().get("usedBytes") == used)


def events(cast: Cast, reason: str) -> list[dict[str, Any]]:
    items = json.loads(cast.kubectl("get", "events", "-o", "json"))["items"]
    return [one for one in items if one["reason"] == reason]


def test_every_series_of_a_pod_says_who_holds_its_limit_and_no_other_does(
    cast: Cast, sidecar: Sidecar
) -> None:
    sidecar.tells(sidecar.capped())
    until_held_by(cast, "Framework")
    sidecar.tells(sidecar.capped(), sidecar.bare(200))
    until_held_by(cast, "None")

    for name in ("gpumem_used_bytes", "gpumem_limit_bytes"):
        assert series(cast, name, enforced_by="None")
        assert series(cast, name, enforced_by="Framework") == []


def test_the_policy_counts_its_pods_by_who_holds_their_limits(cast: Cast, sidecar: Sidecar) -> None:
    sidecar.tells(sidecar.capped())
    cast.until(lambda: counted(cast) == {"framework": 1})
    sidecar.tells(sidecar.capped(), sidecar.bare(200))
    cast.until(lambda: counted(cast) == {"none": 1})


def test_why_tells_of_each_process_what_bounds_it_and_what_to_do(
    cast: Cast, sidecar: Sidecar, reader: Person
) -> None:
    sidecar.tells(sidecar.capped(), sidecar.bare(200))
    until_held_by(cast, "None")

    lines = reader.asks("why", "pod/train", "-n", cast.namespace).stdout.splitlines()

    first = lines.index(f"  used by main on {GPU}: 3584Mi (said by Sidecar)")
    assert lines[first + 1 : first + 3] == [
        f"    process {MAIN} (its id in the pod): holds 3Gi, bound by Framework, cap 7Gi,"
        " reserve 1Gi, with torch, vllm takes gpu_memory_utilization 0.0498 in the place of 0.92",
        "    process 200 (its id in the pod): holds 512Mi, bound by None (NoShim)",
    ]
    told = lines[first + 3]
    assert told.startswith("  limit of main held by None: NoShim (")
    assert told.endswith("changed variables)) [process 200]")
    assert lines[-1].endswith("or let the driver hold the limit")


def test_hits_of_a_cap_are_counted_and_told_of_once(cast: Cast, sidecar: Sidecar) -> None:
    for hits in (2, 5, 9):
        sidecar.tells(sidecar.capped(hits=hits, held=hits * GIB // 2))
        until_counted(cast, hits)
        until_looked_at(cast, hits * GIB // 2)

    [event] = events(cast, "CapHit")
    assert event["type"] == "Warning"
    assert event["involvedObject"]["uid"] == sidecar.uid
    assert "torch in container main ran into its memory cap" in event["message"]


def test_a_limit_that_nothing_holds_any_more_is_told_of_once(cast: Cast, sidecar: Sidecar) -> None:
    for pid in (200, 201):
        sidecar.tells(sidecar.capped())
        cast.until(lambda: counted(cast) == {"framework": 1})
        sidecar.tells(sidecar.capped(), sidecar.bare(pid))
        cast.until(lambda: counted(cast) == {"none": 1})
        cast.until(lambda: events(cast, "LimitNotHeld"))

    [event] = events(cast, "LimitNotHeld")
    assert event["type"] == "Warning"
    assert event["involvedObject"]["uid"] == sidecar.uid
    assert "NoShim" in event["message"]
    assert "(process 200)" in event["message"]
    assert "kubectl gpumem why pod/train" in event["message"]


@pytest.mark.parametrize(
    ("cap", "held"), [(100 * GIB, 3 * GIB), (GIB, 3 * GIB), (7 * GIB, 9 * GIB)]
)
def test_what_does_not_fit_into_a_claim_or_the_limit_shows_in_the_detail(
    cast: Cast, sidecar: Sidecar, reader: Person, cap: int, held: int
) -> None:
    sidecar.tells(sidecar.capped(cap=cap, held=held))
    until_held_by(cast, "None")
    text = reader.asks("why", "pod/train", "-n", cast.namespace).stdout
    [line] = [line for line in text.splitlines() if "limit of main held by" in line]
    assert "None: OverLimit" in line
    assert f"[process {MAIN}" in line
