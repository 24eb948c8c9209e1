"""What scenarios do on a place, and what operator, agent and driver say of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from endtoend.team import Team
from gpu_e2e.place import Place
from gpu_e2e.watch import Picture
from gpumem_operator.cli import leader
from gpumem_operator.cli.cluster import Access, cluster

GIB = 2**30
MIB = 2**20
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1
ASK_SECONDS = 0.3
"""The leader answers four questions in a second."""
T = TypeVar("T")
_numbers = itertools.count(1)


class NotSeenError(Exception):
    """Something that a scenario waited for did not happen."""


def until(look: Callable[[], T | None], what: str, *, seconds: float = PATIENCE_SECONDS) -> T:
    """The first answer that is neither None nor false. Raises NotSeenError."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise NotSeenError(f"{what}: not within {seconds:.0f} s")
        time.sleep(PAUSE_SECONDS)
    return found


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
        kubectl("create", "-f", "-", input=json.dumps(raw))
        self._ends.callback(kubectl, "delete", "gmt", label, "--wait=false", check=False)
        return label

    def team(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Actor:
        """A namespace with a policy; without a spec there is none."""
        kubectl = self.place.node.cluster.kubectl
        started = Team(self.place.node.cluster, f"e2e-{name}-{next(_numbers)}")
        self._ends.callback(started.end)
        pairs = [f"{key}={value}" for key, value in (labels or {}).items()]
        if pairs:
            kubectl("label", "namespace", started.name, *pairs)
        if spec and "created" not in (answer := started.policy("policy", **spec)):
            raise NotSeenError(answer)
        if spec:
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
        raw = self.spec(name, program)
        if "created" not in (answer := self.team.create(raw)):
            raise NotSeenError(answer)
        uid: str = self.pod(name)["metadata"]["uid"]
        return uid

    def pod(self, name: str) -> dict[str, Any]:
        return self.team.get("pod", name)

    def gone(self, name: str) -> bool:
        return not self.team.cluster.kubectl(
            "get", "pod", name, "-n", self.name, "--ignore-not-found", "-o", "name"
        ).stdout

    def says(self, name: str, *, seconds: float = PATIENCE_SECONDS) -> Any:
        """The first JSON that a pod prints; NotSeenError with what it prints instead."""

        def look() -> Any:
            values = self.said(name)
            if not values and self.pod(name)["status"].get("phase") in ("Failed", "Succeeded"):
                raise NotSeenError(f"{name} ended: {self._log(name)[-1500:]}")
            return values and values[0]

        try:
            return until(look, f"{self.name}/{name} prints something", seconds=seconds)
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
        return self.team.cluster.kubectl(*where, *command).stdout

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


async def _ask(place: Place, namespace: str) -> Any:
    async with cluster(Access(kubeconfig=place.node.cluster.kubeconfig)) as api:
        return await leader.ask(api, leader.Release(), namespace=namespace)


def tenants_usage(place: Place, tenant: str) -> dict[str, Any]:
    """What the leader says of a tenant."""

    async def ask() -> Any:
        async with cluster(Access(kubeconfig=place.node.cluster.kubeconfig)) as api:
            return await leader.ask_tenants(api, leader.Release(), tenant=tenant)

    found: dict[str, Any] = asyncio.run(ask())["tenants"][0]
    return found
