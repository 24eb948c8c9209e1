"""A namespace with a policy, its pods, and the moments at which something happened to them."""

import base64
import json
import os
import select
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from devcluster.container_status import container_status
from devcluster.installation import Installation
from gpumem_operator import names

PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 0.2
_GPU_CONTAINER = {
    "name": "main",
    "image": "none",
    "resources": {"limits": {names.GPU_RESOURCE: "1"}},
}


class Pod(NamedTuple):
    """One that runs, as a kubelet would say."""

    name: str
    uid: str
    container_id: str
    """64 hexadecimal digits."""


class Team:
    """Use `Team.start`. Its pods are on a node of its own, which has no kubelet."""

    def __init__(self, operator: Installation, name: str, folder: Path) -> None:
        self.operator = operator
        self.name = name
        self.folder = folder
        self.run_folder = folder / "run"
        """The volume in which shims tell about their processes."""
        self._changed = threading.Condition()
        self._deleted: dict[str, float] = {}
        self._over_since: dict[str, float] = {}

    @classmethod
    @contextmanager
    def start(cls, operator: Installation, name: str, spec: Mapping[str, Any]) -> Iterator["Team"]:
        """`spec` is the policy's. Pods are watched until the end of the block."""
        with TemporaryDirectory() as folder:
            team = cls(operator, name, Path(folder))
            team._set_up(spec)
            watch = operator.cluster.watch(
                "get", "--raw", f"/api/v1/namespaces/{name}/pods?watch=true"
            )
            thread = threading.Thread(target=team._follow, args=(watch.stdout,))
            thread.start()
            try:
                yield team
            finally:
                watch.kill()
                watch.wait()
                thread.join()

    def _set_up(self, spec: Mapping[str, Any]) -> None:
        policy = _object(names.API_VERSION, names.POLICY_KIND, "bench", namespace=self.name)
        self._create(
            _object("v1", "Node", self.name),
            _object("v1", "Namespace", self.name),
            policy | {"spec": spec},
        )
        account = ["get", "serviceaccount", "default", "-n", self.name]
        self._until(lambda: not self.operator.cluster.kubectl(*account, check=False).returncode)

    def pod(self, name: str) -> Pod:
        """Create one; the webhook admits it."""
        spec = {
            "nodeName": self.name,
            # No kubelet renews the node, and the control plane evicts from a node that is lost.
            "tolerations": [{"operator": "Exists"}],
            "containers": [_GPU_CONTAINER],
        }
        self._create(_object("v1", "Pod", name, namespace=self.name) | {"spec": spec})
        uid = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["metadata"]["uid"]
        pod = Pod(name, uid, os.urandom(32).hex())
        patch = json.dumps({"status": _running(pod)})
        self.kubectl("patch", "pod", name, "--subresource=status", "-p", patch)
        return pod

    def add_agent(self, name: str, *, account: str) -> None:
        """The object of the agent's pod on the node, and its account; the chart has it switched
        off. Nobody runs the pod."""
        where = self.operator.namespace
        spec = {
            "nodeName": self.name,
            "serviceAccountName": account,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "agent", "image": "none"}],
        }
        self._create(_object("v1", "ServiceAccount", account, namespace=where))
        self._create(_object("v1", "Pod", name, namespace=where) | {"spec": spec})

    def remove(self, pod: Pod) -> None:
        """At once: nothing confirms its end."""
        self.kubectl("delete", "pod", pod.name, "--force", "--grace-period=0", "--wait=false")

    def token(self, pod: str, *, account: str = "default", namespace: str = "") -> str:
        """Of a ServiceAccount, bound to a pod as a kubelet's are."""
        bound = ["--bound-object-kind=Pod", f"--bound-object-name={pod}"]
        asked = ["create", "token", account, f"--audience={names.TOKEN_AUDIENCE}", *bound]
        return self.kubectl(*asked, namespace=namespace).strip()

    def kubectl(self, *arguments: str, namespace: str = "") -> str:
        where = ("-n", namespace or self.name)
        return self.operator.cluster.kubectl(*arguments, *where).stdout

    def _create(self, *objects: Mapping[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.operator.cluster.kubectl("create", "-f", "-", input=json.dumps(items))

    # What the operator says and knows

    def report_environment(self, token: str) -> dict[str, str]:
        """Where a sender reports to, and by what it trusts that."""
        secret = f"{self.operator.release}-webhook-cert"
        where = self.operator.namespace
        found = json.loads(self.kubectl("get", "secret", secret, "-o", "json", namespace=where))
        file = self.folder / "token"
        file.write_text(token)
        return {
            "GPUMEM_REPORT_URL": f"https://127.0.0.1:{self.operator.report_ports[0]}/v1/reports",
            "GPUMEM_REPORT_CA": base64.b64decode(found["data"]["ca.crt"]).decode(),
            "GPUMEM_REPORT_TOKEN_FILE": str(file),
        }

    def wait_until_measured(self, pod: Pod) -> None:
        """Until the leader knows that it holds something."""
        [url] = self.operator.health_urls("controller")

        def look() -> bool:
            with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            return any(
                line.startswith("gpumem_used_bytes{")
                and f'pod="{pod.name}"' in line
                and float(line.rpartition(" ")[2]) > 0
                for line in lines
            )

        self._until(look)

    def over_since(self, pod: Pod) -> float:
        """The beginning of its grace period, in seconds since the epoch."""
        return self._wait_for(self._over_since, pod)

    def deleted_at(self, pod: Pod) -> float:
        """When it was seen that it is being deleted, in seconds since the epoch."""
        return self._wait_for(self._deleted, pod)

    def _wait_for(self, moments: Mapping[str, float], pod: Pod) -> float:
        with self._changed:
            if not self._changed.wait_for(lambda: pod.uid in moments, PATIENCE_SECONDS):
                raise RuntimeError(f"{pod.name}: nothing came of it in {PATIENCE_SECONDS:g} s")
            return moments[pod.uid]

    def _follow(self, events: Any) -> None:
        # Where the watch is ended in the middle of a line, that one is of no use.
        for line in (line for line in events if line.endswith(b"\n")):
            now, pod = time.time(), json.loads(line)["object"]
            uid = pod["metadata"]["uid"]
            conditions = pod["status"].get("conditions") or ()
            since = [
                datetime.fromisoformat(one["lastTransitionTime"]).timestamp()
                for one in conditions
                if (one["type"], one["status"]) == (names.OVERUSE_CONDITION, "True")
            ]
            with self._changed:
                if since:
                    self._over_since.setdefault(uid, since[0])
                if "deletionTimestamp" in pod["metadata"]:
                    self._deleted.setdefault(uid, now)
                self._changed.notify_all()

    def _until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: it did not come to that")
            time.sleep(_POLL_SECONDS)


def ended_at(pid: int) -> float:
    """When a child of this process has ended, in seconds since the epoch."""
    descriptor = os.pidfd_open(pid)
    try:
        if not select.select([descriptor], [], [], PATIENCE_SECONDS)[0]:
            raise RuntimeError(f"process {pid} lives after {PATIENCE_SECONDS:g} s")
        return time.time()
    finally:
        os.close(descriptor)


def _object(version: str, kind: str, name: str, *, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _running(pod: Pod) -> dict[str, Any]:
    status = container_status(_GPU_CONTAINER) | {"containerID": f"containerd://{pod.container_id}"}
    return {"phase": "Running", "containerStatuses": [status]}
