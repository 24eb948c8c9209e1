"""The story of the demo: each step says what it shows, shows the command, and its output."""

from __future__ import annotations

from typing import Any

from devcluster.demo_answers import over_the_limit_is_answered, replicas_follow
from devcluster.demo_live import over_the_limit, who_holds_what
from devcluster.demo_stage import Stage, bold, conclude, explain

HELD_BYTES = 4 * 2**30
"""By each pod of the demo where pods run, see examples/demo/image."""


def tell(stage: Stage) -> None:
    """All steps, from an empty cluster to charged tenants and what their pods hold."""
    live = _STEPS_OF_REAL_PODS if stage.runs_pods else _STEPS_OF_SIMULATED_PODS
    for number, (title, step) in enumerate((*_STEPS, *live, _LAST_STEP), start=1):
        print(bold(f"--- {number}. {title}"))
        step(stage)


def _node(stage: Stage) -> None:
    explain(
        *(_REAL_NODE if stage.runs_pods else _SIMULATED_NODE),
        "The operator adds nvidia.com/memory: 171798691840 bytes, which are 160Gi.",
    )
    memory = r"{.status.allocatable.nvidia\.com/memory}"
    stage.wait_for("the node's memory", "get", "node", stage.node, "-o", f"jsonpath={memory}",
                   until="171798691840|160Gi")  # fmt: skip
    stage.run("get", "node", stage.node, *_columns("node"))
    conclude(
        "It is counted per node, not per card: the scheduler keeps the sum of what containers ask",
        "for by nvidia.com/memory within 160Gi, and may put more on one card than that card has.",
        "To place by card is not part of this release.",
    )


_SIMULATED_NODE = (
    "The node `gpu-node` is simulated: an object with the labels that NVIDIA's feature discovery",
    "writes for 2 cards of 80 GiB. Up to 4 containers may share a card, so the node offers 8 GPUs.",
    "Nothing runs on it; the API server, the scheduler and the operator are real.",
)
_REAL_NODE = (
    "The node is real and runs pods, the operator's too; its driver is simulated. It has the",
    "labels that NVIDIA's feature discovery writes for 2 cards of 80 GiB. Up to 4 containers may",
    "share a card, so it offers 8 GPUs.",
)


def _before(stage: Stage) -> None:
    explain("Without a policy the operator does not touch a pod. This is one as it is stored:")
    stage.run("apply", "-f", "examples/demo/1-namespace.yaml")
    _service_account(stage)
    stage.run("apply", "-f", "examples/demo/train.yaml")
    _show_pod(stage, "train")


def _after(stage: Stage) -> None:
    delete = ["delete", "pod", "train", "-n", "research"]
    if stage.runs_pods:
        explain("The first pod is deleted. With a policy, the very same file then becomes:")
        stage.run(*delete, "--grace-period=1")
    else:
        explain(
            "The first pod goes by force, since nothing on the simulated node confirms its end.",
            "With a policy, the very same file then becomes:",
        )
        stage.run(*delete, "--force", "--grace-period=0")
    stage.run("apply", "-f", "examples/demo/2-policy.yaml")
    stage.run("apply", "-f", "examples/demo/train.yaml")
    _show_pod(stage, "train")
    conclude(
        "The limit is frozen into the container, the author's allocator settings are kept and the",
        "policy's added, the shim is found through PYTHONPATH, the sidecar sits beside it.",
    )


def _refusals(stage: Stage) -> None:
    explain("What can not be right is refused with its numbers. A pod that means 8Gi per GPU:")
    stage.run("apply", "-f", "examples/demo/too-little.yaml", check=False)
    explain("A policy with two typing errors, one of them an allocator key that no PyTorch has:")
    stage.run("apply", "-f", "examples/demo/typo.yaml", check=False)


def _workloads(stage: Stage) -> None:
    explain("Jobs and Deployments need no change; the scheduler counts GPU memory like any other.")
    stage.run("apply", "-f", "examples/demo/job.yaml", "-f", "examples/demo/deployment.yaml")
    stage.run("scale", "deployment/serve", "--replicas=5", "-n", "research")
    stage.wait_for("a pod that does not fit", "get", "events", "-n", "research",
                   until="Insufficient nvidia.com/memory")  # fmt: skip
    stage.run("get", "pods", "-n", "research", *_columns("pods"))
    explain(
        "Four replicas of 36Gi and the pod of 8Gi fit on 160Gi; the fifth replica waits. (The Job",
        "declares no memory: its two pods have the policy's default as limit and charge, and the",
        "scheduler does not count it, so limits of 168Gi are on this node. It counts them, too,",
        "where the chart's scheduling.fillResource is Enabled.)",
    )
    failed = "--field-selector=reason=FailedScheduling"
    stage.run("get", "events", "-n", "research", failed, *_columns("events"))


def _tenants(stage: Stage) -> None:
    explain("A tenant is a set of namespaces with one quota. What its pods take is added up:")
    stage.run("apply", "-f", "examples/demo/3-tenant.yaml")
    stage.wait_for("the tenant's charge", "get", "gmt", "research", "-o",
                   "jsonpath={.status.conditions[?(@.type=='WithinQuota')].status}",
                   until="True")  # fmt: skip
    stage.wait_for("the policy's counts", "get", "gmp", "training", "-n", "research", "-o",
                   "jsonpath={.status.pods.managed}", until="8")  # fmt: skip
    stage.run("get", "gmp,gmt", "-A")
    conclude(
        "Charged are 5 x 36Gi, 2 x 8Gi of the Job and 8Gi: a pod counts from its creation on, so",
        "the replica that waits for a node does too. That makes 204Gi, more than the node's 160Gi.",
    )


def _measured(stage: Stage) -> None:
    explain(
        "Each workload holds 4 GiB on a card of the simulated driver. The sidecars read that by",
        "NVML, in their pods' own PID namespaces, and report it to the controller:",
    )
    running = "{.items[?(@.status.phase=='Running')].metadata.name}"
    stage.wait_for("that 7 pods run", "get", "pods", "-n", "research", "-o", f"jsonpath={running}",
                   until=r"(\S+\s*){7}")  # fmt: skip
    used = "jsonpath={.status.memory.usedBytes}"
    stage.wait_for("that all of them are measured", "get", "gmp", "training", "-n", "research",
                   "-o", used, until=f"^{7 * HELD_BYTES}$")  # fmt: skip
    stage.run("get", "gmp", "training", "-n", "research", "-o", "jsonpath={.status.memory}")
    explain("Who holds how much, the most first:")
    stage.gpumem("top", "-n", "research")
    explain(
        "One pod, with what holds its limit and the next step. Nothing holds it: the memory is",
        "taken by a program in C, in which no shim can be; frameworks in Python would be capped.",
    )
    stage.gpumem("why", "pod/train", "-n", "research")


def _offline(stage: Stage) -> None:
    explain(
        "The same answers come from files, without a cluster, for a pull request. (In the cluster",
        "the Deployment was scaled to five replicas; its file says four.)",
    )
    stage.gpumem("charge", "-o", "table", *_OFFLINE)


_OFFLINE = [
    argument
    for name in ("1-namespace", "2-policy", "3-tenant", "train", "job", "deployment")
    for argument in ("-f", f"examples/demo/{name}.yaml")
]

_STEPS = (
    ("Nodes offer GPU memory", _node),
    ("A pod before", _before),
    ("A policy, and the pod after", _after),
    ("Refusals", _refusals),
    ("A Job and a Deployment", _workloads),
    ("Policies and tenants", _tenants),
)
_STEPS_OF_SIMULATED_PODS = (
    ("Who holds what", who_holds_what),
    ("A program that takes more than its limit", over_the_limit),
    ("What is done about it", over_the_limit_is_answered),
    ("Replicas that follow GPU memory", replicas_follow),
)
_STEPS_OF_REAL_PODS = (("What is measured", _measured),)
_LAST_STEP = ("From files", _offline)


def _service_account(stage: Stage) -> None:
    stage.wait_for("the namespace's ServiceAccount", "get", "serviceaccount", "-n", "research",
                   until="default")  # fmt: skip


def _show_pod(stage: Stage, name: str) -> None:
    """What matters of a pod, in a few lines."""
    pod = stage.get("pod", name, "-n", "research")
    spec = pod["spec"]
    inits = [container["name"] for container in spec.get("initContainers", [])]
    container = spec["containers"][0]
    print(f"pod {name}, as the API server has it:")
    print(f"  init containers  {', '.join(inits) or '-'}")
    print(f"  labels           {_pairs(pod['metadata'].get('labels') or {})}")
    print(f"  limits           {_pairs(container['resources']['limits'])}")
    for number, entry in enumerate(container.get("env", [])):
        print(f"  {'environment' if number == 0 else '':<17}{entry['name']}={entry.get('value')}")
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    print(f"  mounts           {', '.join(mounts)}\n")


def _pairs(mapping: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in mapping.items()) or "-"


def _columns(name: str) -> list[str]:
    return ["-o", f"custom-columns-file=examples/demo/columns/{name}.txt"]
