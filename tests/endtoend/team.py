"""A namespace of a real cluster, seen through kubectl as its users see it."""

from __future__ import annotations

import json
import time
from typing import Any

from devcluster import Cluster
from patience import PATIENCE_SECONDS

PAUSE_SECONDS = 0.1


class Team:
    """Creates objects in one namespace; answers are stored objects or what kubectl printed."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.kubectl("create", "namespace", name)
        self.until("get", "serviceaccount", "default", until="default")

    def end(self) -> None:
        force = ["--all", "--force", "--grace-period=0", "-n", self.name]
        self.cluster.kubectl("delete", "pods", *force, check=False)
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """What kubectl prints, errors and warnings included."""
        result = self.cluster.kubectl(*arguments, "-n", self.name, input=input, check=False)
        return result.stderr + result.stdout

    def create(self, raw: dict[str, Any]) -> str:
        return self.kubectl("create", "-f", "-", input=json.dumps(raw))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found = self.cluster.kubectl("get", kind, name, "-n", self.name, "-o", "json")
        answer: dict[str, Any] = json.loads(found.stdout)
        return answer

    def until(self, *arguments: str, until: str, input: str | None = None) -> None:
        """Ask until the answer contains a text: the operator works on its own time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while until not in (answer := self.kubectl(*arguments, input=input)):
            assert time.monotonic() < deadline, f"{until!r} is not in {answer!r}"
            time.sleep(PAUSE_SECONDS)

    def policy(self, name: str = "training", **spec: Any) -> str:
        return self.create(
            {
                "apiVersion": "gpumemory.dev/v1alpha1",
                "kind": "GPUMemoryPolicy",
                "metadata": {"name": name},
                "spec": spec or {"limits": {"default": "8Gi", "max": "40Gi"}},
            }
        )


def pod(
    name: str = "train",
    *,
    annotations: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    limits: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod with one container `main`; one GPU unless `limits` say otherwise."""
    container = {
        "name": "main",
        "image": "train:1",
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": {"limits": limits or {"nvidia.com/gpu": 1}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [container], **spec},
    }


def environment(stored: dict[str, Any]) -> dict[str, Any]:
    [container] = [c for c in stored["spec"]["containers"] if c["name"] == "main"]
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}
