"""Runs what pods of simulated nodes hold, and says of them what a kubelet would.

A pod with the annotation `simulation/holds: 6Gi` gets a simulated program that holds so much of its
node's card, and its own sidecar; when the annotation changes, so does what the program holds. Where
the pod is deleted or evicted, both end at once, and it goes. Pods without the annotation are left
as they are: scheduled, and pending.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.progress import say
from devcluster.simulated_pod import SIDECAR, SimulatedPod

HOLDS = "simulation/holds"
_MIB_BY_UNIT = {"Mi": 1, "Gi": 1024}
_AUDIENCE = "gpumemory.dev"
_DURATION = "--duration=24h"
RETRY_SECONDS = 1.0


class SimulatedKubelet:
    """Of several nodes, given by their drivers' state folders."""

    def __init__(self, cluster: Cluster, drivers: Mapping[str, Path]) -> None:
        self._cluster = cluster
        self._drivers = drivers
        self._pods: dict[str, SimulatedPod] = {}
        self._held: dict[str, int] = {}
        """In MiB, by the uid of each pod that runs."""
        self._folder = Path(tempfile.mkdtemp(prefix="pods-", dir=cluster.root))
        self._over = threading.Event()
        self._watch = self._start_watch()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._watch.kill()
        self._watch.wait()
        self._thread.join()
        for pod in self._pods.values():
            pod.end()

    def _start_watch(self) -> subprocess.Popen[bytes]:
        """Prints an event a line, first of all pods that are there."""
        return self._cluster.watch("get", "--raw", "/api/v1/pods?watch=true")

    def _follow(self) -> None:
        # The API server ends a watch after a while, and a new one begins with all pods again.
        while True:
            self._follow_once()
            self._watch.wait()
            if self._over.wait(RETRY_SECONDS):
                return
            self._watch = self._start_watch()

    def _follow_once(self) -> None:
        assert self._watch.stdout is not None
        with self._watch.stdout as events:
            for line in events:
                event = json.loads(line)
                try:
                    self._see(event["type"], event["object"])
                except ClusterError as error:
                    say(f"the simulated kubelet: {error}")

    def _see(self, change: str, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        uid, driver = metadata["uid"], self._drivers.get(pod["spec"].get("nodeName", ""))
        if change == "DELETED" or "deletionTimestamp" in metadata:
            self._held.pop(uid, None)
            if uid in self._pods:
                self._end(pod, gone=change == "DELETED")
            return
        mib = _mib(metadata.get("annotations", {}).get(HOLDS, ""))
        if driver is None or mib is None or self._held.get(uid) == mib or not _has_sidecar(pod):
            return
        self._held[uid] = mib
        if uid in self._pods:
            self._pods[uid].hold(mib)
        else:
            self._start(pod, mib, driver)

    def _end(self, pod: Mapping[str, Any], *, gone: bool) -> None:
        metadata = pod["metadata"]
        self._pods.pop(metadata["uid"]).end()
        if not gone:
            # What a kubelet says once all containers have ended.
            name, where = metadata["name"], ("-n", metadata["namespace"])
            at_once = ("--force", "--grace-period=0", "--wait=false")
            self._cluster.kubectl("delete", "pod", name, *where, *at_once, check=False)

    def _start(self, pod: Mapping[str, Any], mib: int, driver: Path) -> None:
        metadata = pod["metadata"]
        name, where = metadata["name"], ("-n", metadata["namespace"])
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={name}")
        account = pod["spec"]["serviceAccountName"]
        made = self._cluster.kubectl(
            "create", "token", account, f"--audience={_AUDIENCE}", _DURATION, *bound, *where
        )
        folder = self._folder / metadata["uid"]
        folder.mkdir()
        self._pods[metadata["uid"]] = SimulatedPod(
            pod, mib, token=made.stdout.strip(), driver=driver, folder=folder
        )
        patch = json.dumps({"status": _running(pod)})
        self._cluster.kubectl("patch", "pod", name, "--subresource=status", "-p", patch, *where)


def _has_sidecar(pod: Mapping[str, Any]) -> bool:
    return any(one["name"] == SIDECAR for one in pod["spec"].get("initContainers", ()))


def _mib(quantity: str) -> int | None:
    """MiB of `6Gi` or `512Mi`; None for anything else."""
    number, unit = quantity[:-2], quantity[-2:]
    known = unit in _MIB_BY_UNIT and number.isdecimal()
    return int(number) * _MIB_BY_UNIT[unit] if known else None


def _running(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a pod whose containers run."""
    started = {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    statuses = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": started},
        }
        for container in pod["spec"]["containers"]
    ]
    ready = {"type": "Ready", "status": "True"}
    return {"phase": "Running", "conditions": [ready], "containerStatuses": statuses}
