"""Looking at a cluster, and waiting for what others will do there."""

import base64
import json
import subprocess
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from controllers.stored import Raw, sealed
from devcluster import Cluster
from devcluster.installation import NAMESPACE, RELEASE
from gpumem_operator import names
from gpumem_operator.api.seal import Seal
from patience import WAIT, eventually

T = TypeVar("T")


class View:
    """kubectl for tests, as the administrator."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def create(self, *objects: Raw) -> None:
        items = []
        for found in objects:
            metadata = {
                key: value
                for key, value in found["metadata"].items()
                if key in ("name", "namespace", "labels", "annotations")
            }
            spec = {key: value for key, value in found["spec"].items() if value != []}
            body = {**found, "metadata": metadata, "spec": spec}
            body.pop("status", None)
            if found["kind"] == "Pod":
                sealed(body, self._seal)
            items.append(body)
        every = {"apiVersion": "v1", "kind": "List", "items": items}
        self.cluster.kubectl("create", "-f", "-", input=json.dumps(every))

    @cached_property
    def _seal(self) -> Seal:
        secret = self.get("secret", f"{RELEASE}-seal", NAMESPACE)
        return Seal(base64.b64decode(secret["data"][names.SEAL_KEY]))

    def get(self, kind: str, name: str, namespace: str = "default") -> Raw:
        answer = self.cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        found: Raw = json.loads(answer.stdout)
        return found

    def everything(self, kinds: str) -> list[Raw]:
        answer = self.cluster.kubectl("get", kinds, "-A", "-o", "json")
        items: list[Raw] = json.loads(answer.stdout)["items"]
        return items

    def wait(self, what: str, path: str, value: str, namespace: str = "default") -> None:
        """Until the field at a JSON path has the value."""
        condition = f"--for=jsonpath={{{path}}}={value}"
        self.cluster.kubectl("wait", what, condition, "-n", namespace, WAIT)

    def wait_for_label(self, pod: str, value: str, namespace: str) -> None:
        self.wait(f"pod/{pod}", r".metadata.labels.gpumemory\.dev/managed", value, namespace)

    def patch(self, what: str, body: Any, *more: str, namespace: str = "default") -> None:
        text = json.dumps(body)
        kind = "json" if isinstance(body, list) else "merge"
        self.cluster.kubectl("patch", what, f"--type={kind}", "-p", text, "-n", namespace, *more)

    def end(self, pod: str, phase: str, namespace: str) -> None:
        """Say that the pod has finished, as a kubelet would."""
        body = {"status": {"phase": phase}}
        self.patch(f"pod/{pod}", body, "--subresource=status", namespace=namespace)

    def until(self, look: Callable[[], T | None]) -> T:
        """What `look` finds, once it finds something; for what kubectl can not wait for."""
        return eventually(look)

    def admit(self, namespace: str) -> None:
        """Let admission and the controller care for the namespace."""
        self.cluster.kubectl("label", "namespace", namespace, "gpumemory.dev/ignore-")

    def try_kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.cluster.kubectl(*arguments, check=False)
