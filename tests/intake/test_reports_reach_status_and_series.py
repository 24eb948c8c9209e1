"""From a pod's report to the status of its policy and tenant, and to series that end with it."""

from __future__ import annotations

import pytest

from devcluster.installation import Installation
from intake.senders import ADDRESS, NODE, POLICY, Cast
from report_builders import GIB, GPU, Raw, gpu, process, raw_report

pytestmark = pytest.mark.cluster


def measurement(cast: Cast) -> tuple[str, str]:
    for one in cast.get("gpumemorypolicy", POLICY)["status"]["conditions"]:
        if one["type"] == "MeasurementUnavailable":
            return one["status"], one["reason"]
    raise AssertionError("no condition")


def test_a_sidecar_is_told_where_to_send_and_whom_to_trust(cast: Cast) -> None:
    cast.pod("told", runs=False)
    spec = cast.get("pod", "told")["spec"]
    (sidecar,) = [one for one in spec["initContainers"] if one["name"] == "gpumem-sidecar"]
    env = {one["name"]: one.get("value") for one in sidecar["env"]}
    assert env["GPUMEM_REPORT_URL"] == ADDRESS
    # The same PEM verifies the certificate that the leader shows: `send` trusts nothing else.
    assert env["GPUMEM_REPORT_CA"] == cast.ca
    assert cast.send(cast.token("told"), raw_report()).status == 200


def limit_of(uid: str) -> Raw:
    """As an answer tells it."""
    return {
        "podUid": uid,
        "container": "main",
        "containerId": "train-main",
        "limitBytes": 8 * GIB,
    }


def test_use_goes_into_the_statuses_of_policy_and_tenant(cast: Cast) -> None:
    uid = cast.pod("train")
    cast.until(lambda: cast.memory().get("unknownPods") == 1)
    assert "usedBytes" not in cast.memory(), "nothing is known, so there is no number"
    assert measurement(cast) == ("True", "WaitingForReports")

    token = cast.token("train")
    reply = cast.send(token, raw_report(process(3 * GIB, pod=uid)))
    assert (reply.status, reply.body["next"]) == (200, "Any")
    assert reply.body["limits"] == [limit_of(uid)]
    cast.until(lambda: cast.memory().get("usedBytes") == 3 * GIB)
    assert cast.memory()["readable"] == {"declared": "8Gi", "used": "3Gi"}
    assert cast.memory()["unknownPods"] == 0
    assert measurement(cast) == ("False", "Measured")
    status = cast.get("gpumemorypolicy", POLICY)["status"]
    assert status["enforcers"]["none"] == 1
    tenant = cast.until(
        lambda: (
            (found := cast.get("gpumemorytenant", cast.namespace)["status"]).get("usedBytes")
            and found
        )
    )
    assert (tenant["usedBytes"], tenant["unknownPods"]) == (3 * GIB, 0)
    assert tenant["readable"] | {"queued": "0"} == {"charged": "8Gi", "used": "3Gi", "queued": "0"}
    assert tenant["topPods"][0]["usedBytes"] == 3 * GIB


def test_series_say_what_is_held_and_end_with_the_pod(cast: Cast) -> None:
    uid = cast.pod("train")
    where = {"namespace": cast.namespace, "pod": "train"}
    reason = {"reason": "NoReport", "enforced_by": "Unknown"}
    cast.until(lambda: cast.series("gpumem_unknown", **where, **reason) == [1])
    assert cast.series("gpumem_used_bytes", **where) == []

    token = cast.token("train")
    assert cast.send(token, raw_report(process(2 * GIB, pod=uid, pid=77))).status == 200
    labels = {
        **where,
        "container": "main",
        "gpu": GPU,
        "policy": POLICY,
        "tenant": cast.namespace,
        "enforced_by": "None",
        "node": NODE,
    }
    cast.until(lambda: cast.series("gpumem_used_bytes", **labels) == [2 * GIB])
    assert cast.series("gpumem_limit_bytes", **where, container="main") == [8 * GIB]
    assert cast.series("gpumem_unknown", **where) == []
    assert cast.series("gpumem_process_used_bytes", **where) == []
    asked = "?processes=true"
    assert cast.series("gpumem_process_used_bytes", asked, **where, pid="77") == [2 * GIB]
    account = {"namespace": cast.namespace, "tenant": cast.namespace}
    spent = "gpumem_used_byte_seconds_total"
    cast.until(lambda: (cast.series(spent, **account) or [0])[0] > 0)

    cast.kubectl("delete", "pod", "train", "--force", "--grace-period=0")
    cast.until(lambda: cast.series("gpumem_used_bytes", **where) == [])
    assert cast.series("gpumem_limit_bytes", **where) == []
    assert cast.series(spent, **account)[0] > 0, "what was used stays counted"


def test_an_agent_sees_cards_and_is_believed_before_a_sidecar(cast: Cast) -> None:
    node = "agent-1"
    uid = cast.pod("train", node=node)
    claimed = raw_report(process(GIB, pod=uid))
    assert cast.send(cast.token("train"), claimed).status == 200
    told = raw_report(
        process(5 * GIB, pod=uid, container=None, container_id="containerd://train-main"),
        process(GIB, pod=None, container=None, pid=9),
        gpus=[gpu(used=7 * GIB)],
        agent=True,
    )
    reply = cast.send(cast.agent(node), told)
    assert reply.status == 200
    assert limit_of(uid) in reply.body["limits"]
    where = {"namespace": cast.namespace, "pod": "train", "container": "main"}
    cast.until(lambda: cast.series("gpumem_used_bytes", **where) == [5 * GIB])
    parts = {
        part: cast.series(f"gpumem_gpu_{part}_bytes", node=node, gpu=GPU)[0]
        for part in ("total", "reserved", "attributed", "free")
    }
    (unattributed,) = cast.series("gpumem_unattributed_bytes", node=node, gpu=GPU)
    assert unattributed == 2 * GIB
    assert parts["total"] == sum(parts.values()) - parts["total"] + unattributed


def test_a_pod_that_is_left_to_an_agent_waits_for_it_and_gets_what_is_used_of_its_card(
    cast: Cast,
) -> None:
    node = "agent-5"
    left = '{"spec": {"monitoring": {"mode": "NodeAgent"}}}'
    cast.kubectl("patch", "gmp", POLICY, "--type=merge", "-p", left)
    cast.until(lambda: _is_bare(cast, "probe"))
    uid = cast.pod("train", node=node)
    cast.until(lambda: measurement(cast) == ("True", "NoAgentOnNode"))
    assert "usedBytes" not in cast.memory()

    told = raw_report(
        process(GIB, pod=uid, container=None, container_id="containerd://train-main"),
        gpus=[gpu(used=3 * GIB)],
        agent=True,
    )
    told["assignments"] = [
        {"podNamespace": cast.namespace, "podName": "train", "container": "main", "gpus": [GPU]}
    ]
    assert cast.send(cast.agent(node), told).status == 200
    cast.until(lambda: cast.memory().get("usedBytes") == 3 * GIB)
    assert measurement(cast) == ("False", "Measured")


def _is_bare(cast: Cast, name: str) -> bool:
    """Whether a new pod gets no sidecar: the webhook has seen the policy then."""
    cast.pod(name, runs=False)
    spec = cast.get("pod", name)["spec"]
    cast.kubectl("delete", "pod", name, "--force", "--grace-period=0")
    ours = {one["name"] for one in spec.get("initContainers") or ()}
    return "gpumem-sidecar" not in ours and "shareProcessNamespace" not in spec


def test_a_small_change_is_no_reason_to_write(cast: Cast) -> None:
    uid = cast.pod("train")
    token = cast.token("train")
    cast.send(token, raw_report(process(1000 * 2**20, pod=uid), sequence=1))
    cast.until(lambda: cast.memory().get("usedBytes") == 1000 * 2**20)
    stored = cast.get("gpumemorypolicy", POLICY)["metadata"]["resourceVersion"]
    cast.send(token, raw_report(process(1004 * 2**20, pod=uid), sequence=2))
    where = {"namespace": cast.namespace, "pod": "train"}
    cast.until(lambda: cast.series("gpumem_used_bytes", **where) == [1004 * 2**20])
    # A second pod, whose coming is written, shows that the first change has been looked at.
    cast.pod("second", runs=False)
    cast.until(lambda: cast.get("gpumemorypolicy", POLICY)["status"]["pods"]["managed"] == 2)
    assert cast.memory()["usedBytes"] == 1000 * 2**20
    assert cast.get("gpumemorypolicy", POLICY)["metadata"]["resourceVersion"] != stored


def test_the_processes_have_every_right_that_they_use(operator: Installation) -> None:
    text = operator.controller_log.read_text() + operator.webhook_log.read_text()
    # Namespaces of tests before this one are on their way out, and nothing is created in them.
    lines = [line for line in text.lower().splitlines() if "being terminated" not in line]
    assert [line for line in lines if "forbidden" in line] == []
    assert "Traceback" not in text
