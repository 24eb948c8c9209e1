"""What scenarios do on a place, and what operator, agent and driver say of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from subprocess import CompletedProcess
from typing import Any

from devcluster.failure import ClusterError
from endtoend.team import Team
from gpu_e2e.place import Place
from gpu_e2e.refusals import NotSeenError, answered, until
from gpu_e2e.watch import Picture
from gpumem_operator.cli import leader
from gpumem_operator.cli.cluster import Access, cluster

GIB = 2**30
MIB = 2**20
ASK_SECONDS = 0.3
"""The leader answers four questions in a second."""
_numbers = itertools.count(1)


@dataclass
class Stage:
    """Of one scenario. What was made on it is gone after the `with`."""

    place: Place
    _ends: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def tenant(self, name: str, limit: str) -> str:
        """A tenant with a quota, of the namespaces with the label that is returned."""
        label = f"{name}-{next(_numbers)}"
        raw = {
            "apiVersion": "gpumemory.dev/v1alpha1",
            "kind": "GPUMemoryTenant",
            "metadata": {"name": label},
            "spec": {
                "namespaceSelector": {"matchLabels": {"team": label}},
                "quota": {"limit": limit, "wholeGPU": "80Gi"},
            },
        }
        kubectl = self.place.node.cluster.kubectl
        answered(lambda: _create(kubectl, raw))
        self._ends.callback(kubectl, "delete", "gmt", label, "--wait=false", check=False)
        return label

    def team(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Actor:
        """A namespace with a policy; without a spec there is none."""
        kubectl = self.place.node.cluster.kubectl
        started = answered(lambda: Team(self.place.node.cluster, f"e2e-{name}-{next(_numbers)}"))
        self._ends.callback(started.end)
        pairs = [f"{key}={value}" for key, value in (labels or {}).items()]
        if pairs:
            answered(lambda: kubectl("label", "namespace", started.name, "--overwrite", *pairs))
        if spec:
            answered(lambda: _created(started.policy("policy", **spec)))
            get = ("get", "gmp", "policy", "-o", "yaml")
            until(lambda: "observedGeneration" in started.kubectl(*get), "the policy is read")
        return Actor(self.place, started)


@dataclass(frozen=True)
class Actor:
    """One namespace, and who acts in it."""

    place: Place
    team: Team

    @property
    def name(self) -> str:
        return self.team.name

    def spec(self, name: str, program: str) -> dict[str, Any]:
        limits = {self.place.resource: 1}
        return self.place.workload.pod(name, f"import card, json, time\n{program}", limits)

    def run(self, name: str, program: str) -> str:
        """Create a pod; its uid."""
        return self.create(self.spec(name, program))

    def create(self, pod: dict[str, Any]) -> str:
        """The uid of the pod that is stored now."""
        self.store(pod)
        uid: str = answered(lambda: self.pod(pod["metadata"]["name"]))["metadata"]["uid"]
        return uid

    def store(self, raw: dict[str, Any]) -> None:
        answered(lambda: _created(self.team.create(raw)))

    def pod(self, name: str) -> dict[str, Any]:
        return self.team.get("pod", name)

    def gone(self, name: str) -> bool:
        return not self.team.cluster.kubectl(
            "get", "pod", name, "-n", self.name, "--ignore-not-found", "-o", "name"
        ).stdout

    def says(self, name: str) -> Any:
        """The first JSON that a pod prints; NotSeenError with what it prints instead."""

        def look() -> Any:
            values = self.said(name)
            if not values and self.pod(name)["status"].get("phase") in ("Failed", "Succeeded"):
                raise NotSeenError(f"{name} ended: {self._log(name)[-1500:]}")
            return values and values[0]

        try:
            return until(look, f"{self.name}/{name} prints something")
        except NotSeenError as error:
            raise NotSeenError(f"{error}\n{self.why(name)}") from None

    def said(self, name: str) -> list[Any]:
        """All JSON objects that a pod has printed."""
        found = []
        for line in self._log(name).splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def _log(self, name: str) -> str:
        return self.team.kubectl("logs", name, "-c", "main")

    def why(self, name: str) -> str:
        """What a person would look at."""
        return self._log(name)[-1000:] + self.team.kubectl("describe", "pod", name)[-2500:]

    def execute(self, name: str, *command: str, container: str = "main") -> str:
        where = ["exec", name, "-n", self.name, "-c", container, "--"]
        return answered(lambda: self.team.cluster.kubectl(*where, *command)).stdout

    def events(self, name: str) -> set[str]:
        """Reasons of the pod's events."""
        select = f"--field-selector=involvedObject.name={name}"
        shown = self.team.kubectl("get", "events", select, "-o", "jsonpath={.items[*].reason}")
        return set(shown.split())

    def actions(self, name: str) -> list[tuple[str, str]]:
        """What was done about a pod, with the results, in order."""
        status = self.team.get("gmp", "policy").get("status", {})
        return [
            (one["action"], one["result"])
            for one in reversed(status.get("recentActions", []))
            if one["pod"] == name
        ]

    def usage(self, name: str) -> dict[str, Any]:
        """What the leader says of a pod; empty while it does not know it."""
        time.sleep(ASK_SECONDS)
        pods = asyncio.run(_ask(self.place, self.name))["pods"]
        return next((one for one in pods if one["name"] == name), {})

    def enforcer(self, name: str) -> str:
        pod = self.usage(name)
        found = (pod.get("enforcedBy"), pod.get("enforcedReason"))
        return ": ".join(text for text in found if text)

    def look(self) -> Picture:
        return self.place.watch.look()


def _create(kubectl: Callable[..., CompletedProcess[str]], raw: dict[str, Any]) -> None:
    done = kubectl("create", "-f", "-", input=json.dumps(raw), check=False)
    _created(done.stdout + done.stderr)


def _created(answer: str) -> None:
    """Raises ClusterError unless kubectl says that the object is there.

    It is there already where an earlier request was carried out, and its answer was lost."""
    if "created" not in answer and "(AlreadyExists)" not in answer:
        raise ClusterError(answer)


async def _ask(place: Place, namespace: str) -> Any:
    async with cluster(Access(kubeconfig=place.node.cluster.kubeconfig)) as api:
        return await leader.ask(api, leader.Release(), namespace=namespace)


def tenants_usage(place: Place, tenant: str) -> dict[str, Any]:
    """What the leader says of a tenant; empty while it does not know it."""

    async def ask() -> Any:
        async with cluster(Access(kubeconfig=place.node.cluster.kubeconfig)) as api:
            return await leader.ask_tenants(api, leader.Release(), tenant=tenant)

    time.sleep(ASK_SECONDS)
    tenants: list[dict[str, Any]] = asyncio.run(ask())["tenants"]
    return tenants[0] if tenants else {}
