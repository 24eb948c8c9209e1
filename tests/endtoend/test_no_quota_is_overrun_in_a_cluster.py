"""Many clients, two replicas of everything, a leader killed and one stalled: the quota holds.

A watcher of its own, which knows nothing of the operator, was there before the first pod and sums
what may run after each event.
"""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.failure import log_tail
from devcluster.installation import Installation
from endtoend.bystander import standing_by
from endtoend.crowd import CLIENTS, PODS_IN_ALL, Crowd, Ending
from endtoend.quota import put_tenant
from endtoend.team import Team
from patience import eventually

pytestmark = pytest.mark.cluster

ROOM = 100
"""Gi of the quota: as many pods."""
BUSY = 80
"""Pods that are left running by those who end some."""


@pytest.fixture(scope="module")
def doubled() -> Iterator[Installation]:
    """Two replicas of everything, on a cluster of their own: controllers are killed here."""
    with (
        Cluster.start() as cluster,
        Installation.start(cluster, webhook_replicas=2, controller_replicas=2) as started,
    ):
        yield started
        # Shown where a test failed: a busy machine is seen in what the leaders say.
        print(log_tail(started.controller_log))


def leader_of(installation: Installation) -> int:
    """Process id of the replica that says that it leads, once one says so."""
    found: list[int] = []

    def look() -> bool:
        urls = installation.health_urls("controller")
        for url, port in zip(urls, installation.report_ports, strict=True):
            try:
                with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
                    if b"\ngpumem_leader 1.0" in answer.read():
                        found.append(installation.controller_pid_at(port))
            except OSError:
                continue
        return bool(found)

    eventually(look)
    return found[0]


def stored(team: Team, field: str) -> int:
    """A number of the tenant's status."""
    path = f"jsonpath={{.status.{field}}}"
    return int(team.cluster.kubectl("get", "gmt", team.name, "-o", path).stdout or 0)


@pytest.mark.parametrize("mode", ["Queue", "Reject"])
def test_what_is_let_through_never_passes_the_quota_and_ends_at_it(
    doubled: Installation, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(doubled.cluster, f"crowd-{mode.lower()}")
    kubeconfig = doubled.cluster.kubeconfig
    begun = time.monotonic()
    with standing_by(doubled.cluster, team.name, limit=ROOM) as seen:
        put_tenant(team, limit=f"{ROOM}Gi", onExceeded=mode)
        eventually(lambda: stored(team, "epoch") > 0)
        epoch, leader = stored(team, "epoch"), leader_of(doubled)
        with Crowd(kubeconfig, team.name) as crowd:
            seen.wait_for(lambda: seen.let_through >= ROOM // 2)
            kill(doubled, leader)
            killed_at = seen.let_through
            with Ending(kubeconfig, team.name, seen=seen, above=BUSY) as ending:
                doubled.start_controller()
                eventually(lambda: stored(team, "epoch") > epoch)
                stall_the_leader(doubled, team)
                seen.wait_for(lambda: ending.ended > 0)
            seen.wait_for(lambda: seen.sum == ROOM)
        eventually(lambda: stored(team, "chargedBytes") == ROOM * 2**30)
        assert seen.sum == ROOM
        assert seen.most == ROOM
        assert seen.let_through > ROOM
    with capsys.disabled():
        print(
            f"\n{mode}: {CLIENTS} clients asked for {PODS_IN_ALL} pods of 1Gi, the quota is"
            f" {ROOM}Gi: {crowd.created} created in {crowd.seconds:.0f} s, {crowd.retries} retries;"
            f" {seen.let_through} let through, {killed_at} of them when the leader was killed,"
            f" {ending.ended} ended; the most at once were {seen.most}Gi in {seen.events} events;"
            f" {time.monotonic() - begun:.0f} s in all"
        )


def kill(installation: Installation, controller: int) -> None:
    os.kill(controller, signal.SIGKILL)
    eventually(lambda: controller not in installation.controller_pids)


def stall_the_leader(installation: Installation, team: Team) -> None:
    """Past its lease, and woken when another one leads: it has to find that out, and ends."""
    before = stored(team, "epoch")
    stalled = leader_of(installation)
    os.kill(stalled, signal.SIGSTOP)
    try:
        eventually(lambda: stored(team, "epoch") > before)
    finally:
        os.kill(stalled, signal.SIGCONT)
    eventually(lambda: stalled not in installation.controller_pids)
