"""Pods with real tokens, and what they send to whoever leads."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from devcluster.failure import ClusterError
from devcluster.installation import Installation
from gpumem_operator import names
from patience import PATIENCE_SECONDS, eventually
from report_builders import Raw

NODE = "gpu-1"
"""Without an agent."""
AGENT_NODES = (
    "agent-1",
    "agent-2",
    "agent-3",
    "agent-4",
    "agent-5",
    "agent-6",
    "agent-7",
    "agent-8",
)
"""One for each test with an agent, whose word counts on its node for 90 s."""
AGENT = "gpu-memory-operator-agent"
ADDRESS = "https://reports.example:9443/v1/reports"
POLICY = "training"
T = TypeVar("T")


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: Raw


class Cast:
    """One namespace of a cluster with the operator, and everyone in it."""

    def __init__(self, operator: Installation, namespace: str) -> None:
        self.operator = operator
        self.cluster = operator.cluster
        self.namespace = namespace

    def set_up(self) -> None:
        labels = {"team": self.namespace}
        quota = {"limit": "100Gi", "wholeGPU": "80Gi", "onExceeded": "Warn"}
        limits = {"default": "8Gi"}
        self.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": self._meta(labels=labels)},
            {
                "apiVersion": names.API_VERSION,
                "kind": names.TENANT_KIND,
                "metadata": self._meta(),
                "spec": {"namespaceSelector": {"matchLabels": labels}, "quota": quota},
            },
            {
                "apiVersion": names.API_VERSION,
                "kind": names.POLICY_KIND,
                "metadata": {"name": POLICY, "namespace": self.namespace},
                "spec": {"limits": limits},
            },
        )

    def _meta(self, **fields: Any) -> Raw:
        return {"name": self.namespace, **fields}

    def create(self, *objects: Raw) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.cluster.kubectl("create", "-f", "-", input=json.dumps(items))

    def pod(
        self,
        name: str,
        *,
        node: str = NODE,
        gpus: int = 1,
        namespace: str = "",
        account: str = "default",
        runs: bool = True,
        **fields: Any,
    ) -> str:
        """A GPU pod that runs, as a kubelet would say; returns its uid. `fields` go to its spec."""
        where = namespace or self.namespace
        resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        spec: Raw = {
            **fields,
            "nodeName": node,
            "serviceAccountName": account,
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": where}}
        # The controller that makes accounts may be a moment behind the namespace.
        self.until(lambda: self._try_create({**body, "spec": spec}))
        if runs:
            status = {"phase": "Running", "containerStatuses": [running("main", name)]}
            patch = json.dumps({"status": status})
            self.kubectl("patch", "pod", name, "--subresource=status", "-p", patch, namespace=where)
        uid: str = self.get("pod", name, namespace=where)["metadata"]["uid"]
        return uid

    def _try_create(self, body: Raw) -> bool:
        tried = self.cluster.kubectl("create", "-f", "-", input=json.dumps(body), check=False)
        return tried.returncode == 0

    def kubectl(self, *arguments: str, namespace: str = "") -> str:
        where = ("-n", namespace or self.namespace)
        return self.cluster.kubectl(*arguments, *where).stdout

    def get(self, kind: str, name: str, *, namespace: str = "") -> Raw:
        found: Raw = json.loads(self.kubectl("get", kind, name, "-o", "json", namespace=namespace))
        return found

    def token(
        self,
        pod: str | None,
        *,
        account: str = "default",
        namespace: str = "",
        audience: str = names.TOKEN_AUDIENCE,
    ) -> str:
        """A token of a ServiceAccount, bound to a pod as kubelet's are; None: bound to nothing."""
        bound = ["--bound-object-kind", "Pod", "--bound-object-name", pod] if pod else []
        made = self.kubectl(
            "create", "token", account, "--audience", audience, *bound, namespace=namespace
        )
        return made.strip()

    def agent(self, node: str) -> str:
        """The token of an agent's pod on a node."""
        where = self.operator.namespace
        name = f"agent-{self.namespace}-{node}"
        self.pod(name, node=node, gpus=0, namespace=where, account=AGENT, runs=False)
        return self.token(name, account=AGENT, namespace=where)

    # Sending

    @cached_property
    def ca(self) -> str:
        """PEM of the CA that the operator made."""
        name = f"{self.operator.release}-webhook-cert"
        secret = self.get("secret", name, namespace=self.operator.namespace)
        return base64.b64decode(secret["data"]["ca.crt"]).decode()

    def send(
        self,
        token: str | None,
        report: Raw | bytes,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
        path: str = "/v1/reports",
    ) -> Reply:
        """To whoever leads."""
        body = report if isinstance(report, bytes) else json.dumps(report).encode()
        own = {"Authorization": f"Bearer {token}"} if token else {}
        context = ssl.create_default_context(cadata=self.ca)
        port = self.leader_port()
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE_SECONDS, context=context
        )
        try:
            connection.request(method, path, body, {**own, **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, json.loads(answer.read()))
        finally:
            connection.close()

    def leader_port(self) -> int:
        """Where reports are taken in: only the leader listens."""

        def look() -> int | None:
            port = next(filter(listens, self.operator.report_ports), None)
            if port is None:
                self.revive()
            return port

        return self.until(look)

    def leader_pid(self) -> int:
        """Of the process that takes reports in. One that is started again may have the old port."""
        return self.operator.controller_pid_at(self.leader_port())

    def revive(self) -> None:
        """Start what lost the lease on a busy machine and ended, as a kubelet would."""
        with suppress(ClusterError):
            self.operator.start_controller()

    def metrics(self, query: str = "") -> dict[str, float]:
        """Series of the leader about this namespace, and about cards."""
        series = {}
        for url in self.operator.health_urls("controller"):
            try:
                with urllib.request.urlopen(f"{url}/metrics{query}", timeout=10) as answer:
                    text = answer.read().decode()
            except OSError:
                continue
            if "\ngpumem_leader 1.0" not in text:
                continue
            for line in text.splitlines():
                if not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    series[name] = float(value)
        return series

    def series(self, name: str, query: str = "", **labels: str) -> list[float]:
        """Values of one metric with these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return [
            value
            for line, value in self.metrics(query).items()
            if line.startswith(f"{name}{{") and all(label in line for label in wanted)
        ]

    def until(self, look: Callable[[], T | None]) -> T:
        """What `look` finds, once it finds something."""
        return eventually(look)

    def memory(self) -> Raw:
        """`status.memory` of the policy."""
        status = self.get("gpumemorypolicy", POLICY).get("status") or {}
        found: Raw = status.get("memory") or {}
        return found


def running(name: str, pod: str) -> Raw:
    return {
        "name": name,
        "image": "none",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{pod}-{name}",
        "state": {"running": {"startedAt": "2026-11-30T00:00:00Z"}},
    }


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
