"""`kubectl gpumem top`, `why` and `tenants` through the API server's own proxy, and without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpumem_operator import names
from intake.people import Person, gpumem
from intake.senders import NODE, POLICY, Cast
from patience import WAIT
from report_builders import GIB, GPU, gpu, process, raw_report

pytestmark = pytest.mark.cluster


def test_top_shows_the_largest_first_and_cards(cast: Cast, reader: Person) -> None:
    sizes = {"small": GIB, "large": 3 * GIB, "silent": None}
    for name, size in sizes.items():
        uid = cast.pod(name)
        if size is not None:
            assert cast.send(cast.token(name), raw_report(process(size, pod=uid))).status == 200
    shown = reader.asks("top", "-n", cast.namespace).stdout.splitlines()
    assert [line for line in shown if line != line.rstrip()] == []
    assert shown[0].split() == ["POD", "USED", "LIMIT", "HELD", "BY", "NODE", "POLICY", "TENANT"]
    assert [line.split()[0] for line in shown[1:]] == ["large", "small", "silent"]
    assert shown[1].split() == [
        "large", "3Gi", "8Gi", "None:", "NoShim", NODE, POLICY, cast.namespace,
    ]  # fmt: skip
    assert "unknown: NoReport" in shown[3]

    cast.send(
        cast.agent("agent-3"), raw_report(agent=True, gpus=[gpu(used=GIB)], start=cast.namespace)
    )
    everything = reader.asks("top", "-A").stdout
    assert cast.namespace in everything
    assert GPU in everything

    found = json.loads(reader.asks("top", "-n", cast.namespace, "-o", "json").stdout)
    assert {pod["namespace"] for pod in found["pods"]} == {cast.namespace}
    assert found["note"] is None
    reader.asks("top", "--watch", "-o", "json", status=2)


def test_without_the_role_top_shows_what_everyone_may_see(cast: Cast, viewer: Person) -> None:
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    cast.until(lambda: cast.memory().get("usedBytes") == GIB)
    result = viewer.asks("top", "-n", cast.namespace)
    assert "unknown: NotPermitted" in result.stdout
    sums = [line.split() for line in result.stdout.splitlines() if POLICY in line]
    assert sums[-1] == [f"{cast.namespace}/{POLICY}", "8Gi", "1Gi", "0"]
    assert f"bind Role {cast.operator.release}-reader" in result.stderr


def test_tenants_shows_quota_charge_and_use(cast: Cast, reader: Person) -> None:
    name = cast.namespace
    for pod, size in (("modest", GIB), ("greedy", 12 * GIB), ("silent", None)):
        uid = cast.pod(pod)
        if size is not None:
            assert cast.send(cast.token(pod), raw_report(process(size, pod=uid))).status == 200
    [head, *rows] = reader.asks("tenants").stdout.splitlines()
    assert head.split()[:6] == ["TENANT", "NAMESPACES", "LIMIT", "CHARGED", "LEFT", "USED"]
    [row] = [line for line in rows if line.startswith(name)]
    assert " ".join(row.split()) == (
        f"{name} {name} 100Gi 24Gi 76Gi 13Gi + 1 unknown pod - greedy 8Gi, modest 8Gi, silent 8Gi"
    )
    found = json.loads(reader.asks("tenants", "-o", "json").stdout)
    assert found["note"] is None
    assert name in {one["name"] for one in found["tenants"]}
    assert "pods" not in found
    reader.asks("tenants", "--watch", "-o", "json", status=2)

    def told() -> str | None:
        text = reader.asks("tenants", name).stdout
        return text if "UsingMoreThanCharged: True" in text else None

    shown = cast.until(told)
    assert shown.startswith(f"tenant {name}\n  namespaces: {name}\n  limit: 100Gi;")
    assert f"{name}/greedy holds 12Gi, 4Gi above its charge of 8Gi" in shown
    pods = [line.split() for line in shown.splitlines()[-3:]]
    assert pods[0] == [name, "greedy", "8Gi", "12Gi", "8Gi", "None:", "OverLimit", NODE]
    assert pods[2][:5] == [name, "silent", "8Gi", "unknown:", "NoReport"]
    events = cast.kubectl("get", "events", "-o", "json", namespace="default")
    messages = [
        (one["reason"], one["involvedObject"]["name"]) for one in json.loads(events)["items"]
    ]
    assert messages.count(("HoldsMore", name)) == 1


def test_without_the_role_tenants_shows_what_is_stored(cast: Cast, viewer: Person) -> None:
    name = cast.namespace
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    cast.until(lambda: cast.get("gpumemorytenant", name)["status"].get("usedBytes") == GIB)
    result = viewer.asks("tenants")
    [row] = [line for line in result.stdout.splitlines() if line.startswith(name)]
    assert " ".join(row.split()) == f"{name} {name} 100Gi 8Gi 92Gi 1Gi - train 8Gi"
    assert f"bind Role {cast.operator.release}-reader" in result.stderr
    shown = viewer.asks("tenants", name).stdout
    assert "WithinQuota: True (ChargesFit): 8Gi of 100Gi is charged." in shown
    missing = viewer.asks("tenants", "nobody", status=2)
    assert missing.stderr.splitlines()[-1] == "error: tenant nobody: there is none of this name"


def test_a_namespace_in_two_tenants_is_told_in_both(cast: Cast, reader: Person) -> None:
    name, other = cast.namespace, f"{cast.namespace}-too"
    second = {
        "apiVersion": names.API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": other},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": name}},
            "quota": {"limit": "50Gi", "wholeGPU": "80Gi"},
        },
    }
    cast.create(second)
    try:
        ready = '.status.conditions[?(@.type=="Ready")].reason'
        for tenant in (name, other):
            until = f"--for=jsonpath={{{ready}}}=SharedNamespaces"
            cast.kubectl("wait", f"gpumemorytenant/{tenant}", until, WAIT)
        shown = reader.asks("tenants", other).stdout
        assert f"{name} is also in {name}: its pods are charged to each" in shown
    finally:
        cast.kubectl("delete", "gpumemorytenant", other)


def test_why_explains_limit_charge_and_use(cast: Cast, reader: Person) -> None:
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    weaker = {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {"name": "weaker", "namespace": cast.namespace},
        "spec": {"priority": -5},
    }
    cast.create(weaker)
    lines = reader.asks("why", "pod/train", "-n", cast.namespace).stdout.splitlines()
    assert lines[0] == f"pod {cast.namespace}/train (Running on {NODE})"
    assert f"  policy: {POLICY}, before weaker: priority 0 is above -5" in lines
    assert "  container main: limit 8Gi per GPU on 1 GPU (Policy)" in lines
    assert "  declared: 8Gi" in lines
    assert f"  used by main on {GPU}: 1Gi (said by Sidecar)" in lines
    assert any(line.startswith("  limit of main held by None: NoShim (") for line in lines)
    assert lines[-1].startswith("  next step: start it with the variables of its container")
    found = json.loads(reader.asks("why", "pod/train", "-n", cast.namespace, "-o", "json").stdout)
    assert (found["note"], found["schemaVersion"]) == (None, 1)
    assert found["time"].endswith("Z")
    [row] = found["pods"]
    # An Event may have come in between.
    assert without_events(row["lines"]) == without_events(lines)
    top = json.loads(reader.asks("top", "-n", cast.namespace, "-o", "json").stdout)
    assert {key: row[key] for key in top["pods"][0]} == top["pods"][0]


def without_events(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("  event")]


def test_why_says_who_is_charged_to_whom_may_read_tenants(cast: Cast) -> None:
    cast.pod("train")
    shown = gpumem(cast.cluster.kubeconfig, "why", "pod/train", "-n", cast.namespace).stdout
    assert f"  charged: 8Gi to tenant {cast.namespace}" in shown


def test_why_tells_of_a_policy_and_of_a_tenant(cast: Cast, reader: Person) -> None:
    cast.pod("train")
    ready = '.status.conditions[?(@.type=="Ready")].status'
    until = f"--for=jsonpath={{{ready}}}=True"
    cast.kubectl("wait", f"gmp/{POLICY}", until, WAIT)
    policy = reader.asks("why", f"gmp/{POLICY}", "-n", cast.namespace).stdout.splitlines()
    assert policy[0] == f"policy {cast.namespace}/{POLICY}"
    assert any(line.startswith("  limits per GPU: default 8Gi, min ") for line in policy)
    assert any(line.startswith("  Ready: True") for line in policy)
    asked = reader.asks("why", f"gmp/{POLICY}", "-n", cast.namespace, "-o", "json").stdout
    [row] = json.loads(asked)["policies"]
    assert (row["name"], row["lines"]) == (POLICY, policy)
    asked = reader.asks("why", f"gmt/{cast.namespace}", "-o", "json").stdout
    assert json.loads(asked)["tenants"][0]["name"] == cast.namespace
    tenant = reader.asks("why", f"tenant/{cast.namespace}").stdout
    assert tenant.startswith(f"tenant {cast.namespace}\n")


def test_why_leaves_out_events_of_an_earlier_pod_of_the_name(cast: Cast, viewer: Person) -> None:
    uid = cast.pod("train")
    for one, text in ((uid, "of this life"), ("gone", "of the last life")):
        about = {"kind": "Pod", "name": "train", "namespace": cast.namespace, "uid": one}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"about-{one}", "namespace": cast.namespace},
            "involvedObject": about,
            "reason": "FailedScheduling",
            "message": text,
        }
        cast.create(event)
    shown = viewer.asks("why", "pod/train", "-n", cast.namespace).stdout
    assert "of this life" in shown
    assert "of the last life" not in shown


def test_why_tells_of_pods_that_were_refused(cast: Cast, viewer: Person) -> None:
    template = {
        "metadata": {"labels": {"app": "big"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"limits": {"nvidia.com/memory": "8Gi"}},
                }
            ]
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "big", "namespace": cast.namespace},
        "spec": {"selector": {"matchLabels": {"app": "big"}}, "template": template},
    }
    cast.create(deployment)
    ask = ("why", "deploy/big", "-n", cast.namespace)

    def asked() -> str | None:
        text = viewer.asks(*ask).stdout
        return text if "is refused: " in text else None

    shown = cast.until(asked)
    assert shown.startswith(f"Deployment {cast.namespace}/big has no pod now.")
    found = json.loads(viewer.asks(*ask, "-o", "json").stdout)
    assert (found["pods"], found["note"]) == ([], None)
    # Its controller goes on trying, so the number of times is another by now.
    [line] = [one for one in shown.splitlines() if "is refused: " in one]
    assert line.startswith("refused")
    assert line.partition("is refused: ")[2] == found["refused"][0].partition("is refused: ")[2]
    assert "nvidia.com/memory" in line


def test_why_says_what_can_be_said_of_what_is_not_there(cast: Cast, viewer: Person) -> None:
    nothing = viewer.asks("why", "pod/none", "-n", cast.namespace, status=2)
    assert "A pod that was refused is stored nowhere" in nothing.stderr
    assert "there is none of this name" in viewer.asks("top", "-n", "nope", status=2).stderr
    assert "look into all of them with -A" in viewer.asks("top", "-n", cast.namespace).stdout
    result = viewer.asks("why", "deployment/none", "-n", cast.namespace, status=2)
    assert f"Deployment {cast.namespace}/none: there is none of this name" in result.stderr
    result = viewer.asks("why", "gmp/none", "-n", cast.namespace, status=2)
    assert f"policy {cast.namespace}/none: there is none of this name" in result.stderr
    assert "KIND/NAME" in viewer.asks("why", "train", status=2).stderr


def test_a_pod_that_asked_for_no_gpu_and_holds_memory_of_one_is_told_of(
    cast: Cast, reader: Person
) -> None:
    node = "agent-8"
    uid = cast.pod("cpu", node=node, gpus=0)
    held = process(4 * GIB, pod=uid, container=None, container_id="containerd://cpu-main")
    told = raw_report(held, agent=True, gpus=[gpu(used=4 * GIB)], start=cast.namespace)
    assert cast.send(cast.agent(node), told).status == 200

    def why() -> str | None:
        shown = reader.asks("why", "pod/cpu", "-n", cast.namespace).stdout
        return shown if "holds memory of one" in shown else None

    shown = cast.until(why)
    assert f"used by main on {GPU}: 4Gi in 1 process (said by NodeAgent)" in shown
    assert "next step: ask for the GPU in resources.limits, or have its namespace labelled" in shown
    [row] = [
        line.split() for line in reader.asks("top", "-A").stdout.splitlines() if "/cpu" in line
    ]
    assert row == [node, GPU, f"{cast.namespace}/cpu", "4Gi", "1"]


def test_why_says_why_a_pod_is_not_handled(cast: Cast, viewer: Person) -> None:
    cast.kubectl("delete", "gpumemorypolicy", POLICY)
    cast.pod("cpu", gpus=0)
    shown = viewer.asks("why", "po/cpu", "-n", cast.namespace).stdout
    assert "It asks for no GPU" in shown
    cast.cluster.kubectl("label", "namespace", cast.namespace, "gpumemory.dev/ignore=true")
    cast.pod("left-out")
    shown = gpumem(cast.cluster.kubeconfig, "why", "pod/left-out", "-n", cast.namespace).stdout
    assert "not handled: namespace" in shown
    assert "gpumemory.dev/ignore=true" in shown


def test_without_a_cluster_there_is_one_sentence(tmp_path: Path) -> None:
    missing = gpumem(tmp_path / "none", "top", status=2)
    assert missing.stderr.startswith("error: no cluster can be asked")
    assert len(missing.stderr.splitlines()) == 1
