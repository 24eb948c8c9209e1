"""A workload with real pods, which hold what a test says, as a kubelet and sidecars would tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gpumem_operator import names
from intake.senders import POLICY, Cast, running
from report_builders import GIB, Raw, process, raw_report

LIMIT_GIB = 10
AT_ONCE: Raw = {"scaleDown": {"stabilizationSeconds": 0}}


class Fleet(Cast):
    """One namespace with Deployment `serve`, whose pods share a load."""

    load_gib = 0
    """What all pods hold together; a pod holds at most its limit."""
    silent = False
    """Whether no sidecar reports."""
    _begins = False
    """Whether some of its first pods may still be missing: none reports."""
    address = ""
    """Of all its pods."""

    def begin(self, *, quota: Raw | None = None, mode: str = "Active", **fields: Any) -> None:
        labels = {"team": self.namespace}
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": self.namespace, "labels": labels},
            }
        )
        if quota is not None:
            self.create(
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.TENANT_KIND,
                    "metadata": {"name": self.namespace},
                    "spec": {"namespaceSelector": {"matchLabels": labels}, "quota": quota},
                }
            )
        self._tenant = quota is not None
        self._sequence = 0
        self._tokens: dict[str, str] = {}
        self.policy(POLICY, mode=mode, scaling=[self.entry(**fields)])

    def entry(self, **fields: Any) -> Raw:
        """Of spec.scaling."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
        return {"targetRef": reference, "maxReplicas": 6, **AT_ONCE, **fields}

    def policy(self, name: str, **spec: Any) -> None:
        body = {"limits": {"default": f"{LIMIT_GIB}Gi"}, **spec}
        self.create(
            {
                "apiVersion": names.API_VERSION,
                "kind": names.POLICY_KIND,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": body,
            }
        )

    def deploy(self, replicas: int, *, kind: str = "Deployment", **container: Any) -> None:
        """Workload `serve`; its pods run before this returns."""
        labels = {"app": "serve"}
        main = {
            "name": "main",
            "image": "none",
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
            **container,
        }
        template = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if kind == "StatefulSet":
            spec |= {"serviceName": "serve", "podManagementPolicy": "Parallel"}
        # The controller that makes accounts may be a moment behind the namespace.
        self.until(lambda: "default" in self.kubectl("get", "serviceaccounts", "-o", "name"))
        metadata = {"name": "serve", "namespace": self.namespace}
        self.create({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})
        # The first of several pods would report as if it had the whole load for itself.
        self._begins = True
        self.until(lambda: self.live() == replicas)
        self._begins = False

    # The kubelet and the sidecars

    def live(self) -> int:
        """Run what is there as a kubelet would, report what it holds; the number of pods."""
        found = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        staying = []
        for pod in found:
            if pod["metadata"].get("deletionTimestamp"):
                self._end(pod["metadata"]["name"])
            elif pod["spec"].get("nodeName"):
                staying.append(pod)
        self._sequence += 1
        for pod in staying:
            self._report(pod, min(self.load_gib / len(staying), LIMIT_GIB))
        return len(staying)

    def _end(self, name: str) -> None:
        self.kubectl(
            "delete",
            "pod",
            name,
            "--force",
            "--grace-period=0",
            "--ignore-not-found",
            "--wait=false",
        )

    def _report(self, pod: Raw, gib: float) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if pod["status"].get("phase") != "Running":
            status: Raw = {"phase": "Running", "containerStatuses": [running("main", name)]}
            if self.address:
                status |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
            patch = json.dumps({"status": status})
            self.kubectl("patch", "pod", name, "--subresource=status", "-p", patch)
        if self.silent or self._begins:
            return
        if uid not in self._tokens:
            self._tokens[uid] = self.token(name)
        report = raw_report(process(int(gib * GIB), pod=uid), sequence=self._sequence)
        # 401: the pod is gone. 409: the leader is a new one, and knows a later report.
        self.send(self._tokens[uid], report)

    # What came of it

    def replicas(self, kind: str = "deployment") -> int:
        return int(self.kubectl("get", kind, "serve", "-o", "jsonpath={.spec.replicas}"))

    def told(self, name: str = POLICY) -> Raw:
        """The entry of `status.scaling`; empty before there is one."""
        status = self.get("gpumemorypolicy", name).get("status") or {}
        return next(iter(status.get("scaling") or ()), {})

    def active(self, name: str = POLICY) -> tuple[str, str]:
        """Status and reason of condition ScalingActive."""
        status = self.get("gpumemorypolicy", name).get("status") or {}
        for one in status.get("conditions") or ():
            if one["type"] == "ScalingActive":
                return one["status"], one["reason"]
        return "", ""

    def runs_until(self, look: Callable[[], Any]) -> Any:
        """What `look` finds, while pods go on running and reporting."""

        def both() -> Any:
            self.live()
            return look()

        return self.until(both)

    def refused(self, reason: str) -> str:
        """The message, once the target is not scaled for this reason; nothing may have changed."""
        before = self.replicas()
        self.runs_until(lambda: self.told().get("reason") == reason)
        assert self.active() == ("False", reason)
        assert self.replicas() == before
        return str(self.told()["message"])

    def events(self, kind: str) -> list[Raw]:
        found = json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
        return [one for one in found if one["involvedObject"]["kind"] == kind]

    def end(self) -> None:
        if self._tenant:
            self.cluster.kubectl("delete", "gpumemorytenant", self.namespace, "--wait=false")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")
