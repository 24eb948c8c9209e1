"""Forged, late, large and broken reports against the real operator and real tokens."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from gpumem_operator import names
from intake.senders import POLICY, Cast, Reply
from report_builders import GIB, Raw, process, raw_report

pytestmark = pytest.mark.cluster


def used(cast: Cast, pod: str) -> list[float]:
    return cast.series("gpumem_used_bytes", namespace=cast.namespace, pod=pod)


def test_a_sidecar_can_not_report_another_pod(cast: Cast) -> None:
    mine, theirs = cast.pod("mine"), cast.pod("theirs")
    reply = cast.send(cast.token("mine"), raw_report(process(GIB, pod=theirs)))
    assert reply.status == 403
    assert reply.body["error"] == "processes.0.podUid is not the pod of the token"
    assert cast.send(cast.token("mine"), raw_report(process(2 * GIB, pod=mine))).status == 200
    cast.until(lambda: used(cast, "mine") == [2 * GIB])
    assert used(cast, "theirs") == []


def test_a_tenants_token_can_not_claim_to_be_an_agents(cast: Cast) -> None:
    uid = cast.pod("train")
    told = raw_report(process(GIB, pod=uid), agent=True)
    reply = cast.send(cast.token("train"), told)
    assert reply.status == 403
    assert "is not the agent's account" in reply.body["error"]
    # An account of the agent's name, in the tenant's own namespace, is another account.
    cast.kubectl("create", "serviceaccount", "gpu-memory-operator-agent")
    cast.pod("twin", account="gpu-memory-operator-agent")
    token = cast.token("twin", account="gpu-memory-operator-agent")
    assert cast.send(token, told).status == 403
    given = raw_report(process(GIB, pod=uid), given={(uid, "main"): []})
    assert cast.send(cast.token("train"), given).status == 403


def test_an_agent_speaks_for_the_node_in_its_token(cast: Cast) -> None:
    uid = cast.pod("train")
    token = cast.agent("agent-2")
    assert cast.send(token, raw_report(process(GIB, pod=uid), agent=True)).status == 200
    reason = {"namespace": cast.namespace, "pod": "train", "reason": "NoReport"}
    cast.until(lambda: cast.series("gpumem_unknown", **reason) == [1])
    assert used(cast, "train") == []


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param(lambda _: None, 401, id="no token"),
        pytest.param(lambda _: "nonsense", 401, id="no token at all"),
        pytest.param(lambda cast: cast.token("train", audience="other"), 401, id="for another"),
        pytest.param(lambda cast: cast.token("train")[:-9] + "A" * 9, 401, id="forged"),
        pytest.param(lambda cast: cast.token(None), 403, id="bound to no pod"),
    ],
)
def test_a_token_that_is_not_a_pods_for_us_is_refused(
    cast: Cast, token: Callable[[Cast], str | None], status: int
) -> None:
    cast.pod("train")
    assert cast.send(token(cast), raw_report()).status == status


def test_a_pod_without_our_sidecar_reports_nothing(cast: Cast) -> None:
    """In mode NodeAgent nothing of ours is in the pod: what has its token is its own program."""
    cast.kubectl(
        "patch", "gmp", POLICY, "--type=merge", "-p", '{"spec":{"monitoring":{"mode":"NodeAgent"}}}'
    )
    cast.until(lambda: not _has_sidecar(cast, "by-agent"))
    uid = cast.get("pod", "by-agent")["metadata"]["uid"]
    token, told = cast.token("by-agent"), raw_report(process(GIB, pid=1, pod=uid))
    reply = cast.until(lambda: _refused(cast, token, told))
    assert reply.body["error"] == "the pod has no sidecar of the operator, so nothing in it reports"
    reason = {"namespace": cast.namespace, "pod": "by-agent", "reason": "NoAgentOnNode"}
    cast.until(lambda: cast.series("gpumem_unknown", **reason) == [1])
    assert used(cast, "by-agent") == []


def _has_sidecar(cast: Cast, name: str) -> bool:
    """Of a pod that is made anew: the webhook may know the policy as it was, for a moment."""
    cast.kubectl("delete", "pod", name, "--ignore-not-found", "--force", "--grace-period=0")
    cast.pod(name)
    containers = cast.get("pod", name)["spec"].get("initContainers") or ()
    return any(one["name"] == names.SIDECAR_CONTAINER for one in containers)


def _refused(cast: Cast, token: str, told: Raw) -> Reply | None:
    """Until the leader has seen the pod, its reports are taken and not kept."""
    reply = cast.send(token, told)
    return reply if reply.status == 403 else None


def test_a_pod_that_is_on_no_node_holds_nothing_by_its_own_word(cast: Cast) -> None:
    uid = cast.pod("ghost", node="", runs=False)
    assert cast.send(cast.token("ghost"), raw_report(process(GIB, pod=uid))).status == 200
    shown = {"namespace": cast.namespace, "pod": "ghost"}
    cast.until(lambda: cast.series("gpumem_used_bytes", **shown) == [0])
    second = raw_report(process(GIB, pod=uid), sequence=2)
    assert cast.send(cast.token("ghost"), second).status == 200
    cast.until(lambda: cast.series("gpumem_limit_bytes", **shown) == [8 * GIB])
    assert cast.series("gpumem_used_bytes", **shown) == [0]


def test_what_comes_late_or_twice_is_refused(cast: Cast) -> None:
    uid = cast.pod("train")
    token = cast.token("train")

    def status(amount: int, **fields: Any) -> int:
        return cast.send(token, raw_report(process(amount, pod=uid), **fields)).status

    assert status(2 * GIB, sequence=7) == 200
    assert status(GIB, sequence=7) == 409
    assert status(GIB, sequence=6) == 409
    assert status(3 * GIB, sequence=1, start="second") == 200
    assert status(GIB, sequence=8, start="first") == 409
    cast.until(lambda: used(cast, "train") == [3 * GIB])


@pytest.mark.parametrize(
    ("report", "status", "said"),
    [
        pytest.param(b"", 400, "body: Invalid JSON", id="nothing"),
        pytest.param(b"{" * 100_000, 413, "100000 objects are more than 4096", id="deep"),
        pytest.param(b"[" * 100_000, 400, "body: Invalid JSON", id="deep lists"),
        pytest.param(
            b'{"schemaVersion": 2, "schemaVersion": 1}', 400, "Field required", id="fields missing"
        ),
        pytest.param(
            b'{"sequence": 2,' + json.dumps(raw_report()).encode()[1:],
            400,
            "a key twice",
            id="a key twice",
        ),
        pytest.param(raw_report() | {"sequence": "7"}, 400, "sequence: ", id="wrong type"),
        pytest.param(raw_report() | {"schemaVersion": 2}, 400, "schemaVersion: ", id="version"),
        pytest.param(
            raw_report(process(1) | {"unknown": "Silent"}), 400, "processes.0", id="both of one"
        ),
        pytest.param(b" " * (256 * 2**10 + 1), 413, "more than 262144 bytes", id="too large"),
    ],
)
def test_what_is_no_report_is_refused_with_its_path(
    cast: Cast, report: Raw | bytes, status: int, said: str
) -> None:
    cast.pod("train")
    reply = cast.send(cast.token("train"), report)
    assert reply.status == status
    assert said in reply.body["error"]


def test_a_compressed_body_is_not_unpacked(cast: Cast) -> None:
    cast.pod("train")
    reply = cast.send(cast.token("train"), b"x", headers={"Content-Encoding": "gzip"})
    assert reply.status == 415


def test_a_sender_that_comes_too_often_is_slowed_down(cast: Cast) -> None:
    cast.pod("train")
    token = cast.token("train")
    found = [cast.send(token, raw_report(sequence=number)).status for number in range(1, 40)]
    assert found[0] == 200
    assert 429 in found
    cast.pod("other")
    assert cast.send(cast.token("other"), raw_report()).status == 200


def test_what_is_not_there_says_so_and_tells_nothing_else(cast: Cast) -> None:
    cast.pod("train")
    token = cast.token("train")
    assert cast.send(token, raw_report(), path="/").status == 404
    assert cast.send(token, raw_report(), method="PUT").status == 405
    asked = {"X-Gpumem-Token": token}
    assert cast.send(None, b"", method="GET", path="/v1/usage").status == 401
    reply = cast.send(None, b"", headers=asked, method="GET", path="/v1/usage")
    assert reply.status == 403
    assert reply.body.keys() == {"error"}


def test_a_new_leader_shows_no_number_before_it_has_the_whole_picture(cast: Cast) -> None:
    uid = cast.pod("train")
    token = cast.token("train")
    assert cast.send(token, raw_report(process(GIB, pod=uid), sequence=1)).status == 200
    cast.until(lambda: cast.memory().get("usedBytes") == GIB)
    before = cast.leader_pid()
    os.kill(before, signal.SIGTERM)
    cast.until(lambda: cast.leader_pid() != before)

    where = {"namespace": cast.namespace, "pod": "train"}
    cast.until(lambda: cast.series("gpumem_unknown", **where, reason="NoReport") == [1])
    assert used(cast, "train") == []
    cast.until(lambda: "usedBytes" not in cast.memory())
    assert cast.memory()["unknownPods"] == 1

    same = raw_report(kind="Unchanged", gpus=[], sequence=2)
    reply = cast.send(token, same)
    assert (reply.status, reply.body["next"]) == (200, "Full")
    assert used(cast, "train") == []
    reply = cast.send(token, raw_report(process(2 * GIB, pod=uid), sequence=3))
    assert reply.body["next"] == "Any"
    cast.until(lambda: cast.memory().get("usedBytes") == 2 * GIB)
    cast.operator.start_controller()
