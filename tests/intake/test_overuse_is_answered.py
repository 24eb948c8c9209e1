"""From a report over the limit to what is done about the pod, on a real API server."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from gpumem_operator import names
from intake.senders import POLICY, Cast
from report_builders import GIB, Raw, gpu, process, raw_report

pytestmark = pytest.mark.cluster


class Sidecar:
    """Reports every 300 ms what a test says that its pod holds, and answers orders."""

    def __init__(self, cast: Cast, pod: str, *, holds: float, **fields: Any) -> None:
        self.uid = cast.pod(pod, **fields)
        self.holds = holds
        self.answer: str | None = None
        """To a Reclaim; None: it is under way."""
        self.orders: list[Raw] = []
        self._cast = cast
        self._token = cast.token(pod)
        self._ended = threading.Event()
        self._sequence = 0

    def report(self) -> None:
        self._sequence += 1
        claim = {"frameworks": [{"name": "torch", "reclaim": "Supported"}]}
        held = process(int(self.holds * GIB), pid=7, pod=self.uid)
        held |= {"startTime": 100, "shim": claim}
        body = raw_report(held, gpus=[gpu()], sequence=self._sequence, start=f"start-{self.uid}")
        body["acknowledgements"] = [
            {"id": order["id"], "result": self.answer, "bytes": 0}
            for order in (self.orders if self.answer else [])
        ]
        reply = self._cast.send(self._token, body)
        if reply.status == 200:
            self.orders = reply.body["orders"]

    def run(self) -> None:
        while not self._ended.wait(0.3):
            try:
                self.report()
            except OSError:
                continue  # between two leaders nobody listens

    @contextmanager
    def running(self) -> Iterator[Sidecar]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()


def enforce(
    cast: Cast, *actions: str, grace: int = 2, mode: str = "Enforce", timeout: int = 600
) -> None:
    enforcement = {
        "mode": mode,
        "actions": list(actions),
        "gracePeriodSeconds": grace,
        "evictionTimeoutSeconds": timeout,
    }
    patch = json.dumps({"spec": {"enforcement": enforcement}})
    cast.kubectl("patch", "gpumemorypolicy", POLICY, "--type=merge", "-p", patch)


def overuse(cast: Cast, pod: str) -> Raw:
    conditions = cast.get("pod", pod)["status"].get("conditions") or ()
    return next((one for one in conditions if one["type"] == names.OVERUSE_CONDITION), {})


def grace_seconds(cast: Cast, pod: str) -> int:
    """That it was told to end within; 0 where it was not."""
    return int(cast.get("pod", pod)["metadata"].get("deletionGracePeriodSeconds", 0))


def is_ending(cast: Cast, pod: str) -> bool:
    return "deletionTimestamp" in cast.get("pod", pod)["metadata"]


def actions(cast: Cast) -> list[tuple[str, str, str]]:
    status = cast.get("gpumemorypolicy", POLICY).get("status") or {}
    lines = status.get("recentActions") or ()
    return [(line["pod"], line["action"], line["result"]) for line in lines]


def policy_condition(cast: Cast) -> Raw:
    status = cast.get("gpumemorypolicy", POLICY).get("status") or {}
    conditions = status.get("conditions") or ()
    return next((one for one in conditions if one["type"] == "Overuse"), {})


def events(cast: Cast, pod: str) -> list[str]:
    listed: Any = json.loads(
        cast.kubectl(
            "get", "events", "--field-selector", f"involvedObject.name={pod}", "-o", "json"
        )
    )
    return [one["reason"] for one in listed["items"]]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_pod_over_its_limit_gives_back_and_is_then_evicted(cast: Cast) -> None:
    enforce(cast, "Reclaim", "Evict")
    with Sidecar(cast, "train", holds=9).running() as sidecar:
        cast.until(lambda: overuse(cast, "train").get("status") == "True")
        [order] = cast.until(lambda: sidecar.orders)
        assert (order["action"], order["podUid"]) == ("Reclaim", sidecar.uid)
        assert (order["container"], order["pid"], order["startTime"]) == ("main", 7, 100)
        condition = overuse(cast, "train")
        assert condition["reason"] == "Reclaiming"
        waited = moment(condition["lastProbeTime"]) - moment(condition["lastTransitionTime"])
        assert waited.total_seconds() >= 2
        cast.until(lambda: "train" in policy_condition(cast).get("message", ""))
        assert policy_condition(cast)["status"] == "True"
        sidecar.answer = "Busy"
        cast.until(lambda: is_ending(cast, "train"))
    cast.until(lambda: len(actions(cast)) == 2)
    assert actions(cast) == [("train", "Evict", "Done"), ("train", "Reclaim", "Busy")]
    cast.until(lambda: set(events(cast, "train")) >= {"OverLimit", "Reclaiming", "Evicted"})
    line = cast.get("gpumemorypolicy", POLICY)["status"]["recentActions"][0]
    assert (line["limitBytes"], line["usedBytes"]) == (8 * GIB, 9 * GIB)
    counted = {"namespace": cast.namespace, "policy": POLICY, "action": "Evict", "result": "Done"}
    assert cast.series("gpumem_enforcement_actions_total", **counted) == [1]


def test_memory_that_was_given_back_ends_it(cast: Cast) -> None:
    enforce(cast, "Reclaim", "Evict", grace=0)
    with Sidecar(cast, "train", holds=9).running() as sidecar:
        cast.until(lambda: sidecar.orders)
        sidecar.holds, sidecar.answer = 4, "Done"
        cast.until(lambda: overuse(cast, "train").get("status") == "False")
        cast.until(lambda: not sidecar.orders)
    assert not is_ending(cast, "train")
    cast.until(lambda: actions(cast) == [("train", "Reclaim", "Done")])


def test_a_disruption_budget_holds_an_eviction_back(cast: Cast) -> None:
    enforce(cast, "Evict", grace=0)
    cast.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": cast.namespace},
            "spec": {"minAvailable": 1, "selector": {}},
        }
    )
    # The disruption controller has to have seen the budget, or the API server refuses otherwise.
    cast.until(
        lambda: cast.get("poddisruptionbudget", "keep").get("status", {}).get("observedGeneration")
    )
    with Sidecar(cast, "train", holds=9).running():
        cast.until(lambda: ("train", "Evict", "BlockedByPDB") in actions(cast))
        cast.until(lambda: "BlockedByPDB" in events(cast, "train"))
        told = cast.get("gpumemorypolicy", POLICY)["status"]["recentActions"][0]["reason"]
        assert "The disruption budget keep needs 1 healthy pods and has" in told
        assert f"kubectl get pdb -n {cast.namespace}" in told
        labels = {"namespace": cast.namespace, "policy": POLICY, "reason": "BlockedByPDB"}
        cast.until(lambda: cast.series("gpumem_pods_over_limit", **labels) == [1])
        assert not is_ending(cast, "train")
        cast.kubectl("delete", "poddisruptionbudget", "keep")
        cast.until(lambda: is_ending(cast, "train"))


def test_an_action_that_is_added_when_all_were_tried_is_taken(cast: Cast) -> None:
    enforce(cast, "Reclaim", grace=0)
    with Sidecar(cast, "train", holds=9).running() as sidecar:
        sidecar.answer = "Busy"
        cast.until(lambda: overuse(cast, "train").get("reason") == "ActionsExhausted")
        assert "or add Evict to spec.enforcement.actions" in overuse(cast, "train")["message"]
        enforce(cast, "Reclaim", "Evict", grace=0)
        cast.until(lambda: is_ending(cast, "train"))
    cast.until(lambda: len(actions(cast)) == 2)
    assert actions(cast) == [("train", "Evict", "Done"), ("train", "Reclaim", "Busy")]


YEAR = 31_536_000


def test_nobody_gets_a_year_to_end(cast: Cast) -> None:
    enforce(cast, "Evict", grace=0, timeout=60)
    asks = Sidecar(cast, "asks", holds=9, terminationGracePeriodSeconds=YEAR)
    given = Sidecar(cast, "given", holds=5)
    cast.kubectl("delete", "pod", "given", f"--grace-period={YEAR}", "--wait=false")
    assert grace_seconds(cast, "given") == YEAR
    with asks.running(), given.running():
        assert cast.until(lambda: grace_seconds(cast, "asks")) == 60
        told = f"It gets 60 s to end, of {YEAR} s that it asks for"
        assert told in overuse(cast, "asks")["message"]
        given.holds = 9
        cast.until(lambda: grace_seconds(cast, "given") < YEAR)
        assert "and gets 60 s now" in overuse(cast, "given")["message"]
        cast.until(lambda: len(actions(cast)) == 2)
    assert sorted(actions(cast)) == [("asks", "Evict", "Done"), ("given", "Evict", "Done")]


def test_whoever_is_over_or_near_is_told_when_audit_becomes_warn(cast: Cast) -> None:
    enforce(cast, "Evict", grace=0, mode="Audit")
    with Sidecar(cast, "over", holds=9).running(), Sidecar(cast, "near", holds=7.5).running():
        cast.until(lambda: overuse(cast, "over").get("reason") == "WouldAct")
        cast.until(lambda: overuse(cast, "near").get("reason") == "NearLimit")
        assert not {"OverLimit", "NearLimit"} & {*events(cast, "over"), *events(cast, "near")}
        enforce(cast, "Evict", grace=0, mode="Warn")
        cast.until(lambda: "OverLimit" in events(cast, "over"))
        cast.until(lambda: "NearLimit" in events(cast, "near"))
    assert overuse(cast, "over")["reason"] == "OverLimit"


def test_audit_records_and_touches_nobody(cast: Cast) -> None:
    enforce(cast, "Reclaim", "Evict", grace=0, mode="Audit")
    with Sidecar(cast, "train", holds=9).running() as sidecar:
        cast.until(lambda: actions(cast) == [("train", "Reclaim", "WouldHave")])
        assert sidecar.orders == []
        would = "Mode Enforce would act at once on those"
        cast.until(lambda: would in policy_condition(cast).get("message", ""))
    assert not is_ending(cast, "train")
    assert "OverLimit" not in events(cast, "train")


def test_a_leader_that_dies_in_the_grace_period_is_followed_by_one_that_acts_once(
    cast: Cast,
) -> None:
    enforce(cast, "Evict", grace=6)
    with Sidecar(cast, "train", holds=9).running():
        since = cast.until(lambda: overuse(cast, "train").get("lastTransitionTime"))
        os.kill(cast.leader_pid(), signal.SIGKILL)
        cast.until(lambda: is_ending(cast, "train"))
        cast.until(lambda: ("train", "Evict", "Done") in actions(cast))
        assert overuse(cast, "train")["lastTransitionTime"] == since
    assert actions(cast) == [("train", "Evict", "Done")]
    assert events(cast, "train").count("Evicted") == 1


def test_silence_evicts_nobody(cast: Cast) -> None:
    enforce(cast, "Evict", grace=20)
    sidecar = Sidecar(cast, "train", holds=9)
    sidecar.report()
    cast.until(lambda: overuse(cast, "train").get("status") == "True")
    with Sidecar(cast, "other", holds=9).running():
        cast.until(lambda: is_ending(cast, "other"))
    assert not is_ending(cast, "train"), "its last report is older than its grace period"
