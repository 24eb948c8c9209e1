"""Runs what pods of simulated nodes hold, and says of them what a kubelet would.

A pod with the annotation `simulation/holds: 6Gi` gets a simulated program that holds so much of its
node's card, and its own sidecar; when the annotation changes, so does what the program holds. A
program that the card has no room for ends, as others do that run out of memory, and is started
again with what it held before; an Event on the pod says so, and that an annotation can not be read.
Pods without it are left as they are: scheduled, and pending. The end of a pod is confirmed at once.
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

from devcluster.container_status import container_status, finished_status
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.progress import say
from devcluster.simulated_pod import SIDECAR, SimulatedPod

HOLDS = "simulation/holds"
_MIB_BY_UNIT = {"Mi": 1, "Gi": 1024}
_AUDIENCE = "gpumemory.dev"
_DURATION = "--duration=24h"
RETRY_SECONDS = 1.0


class NotAnsweredError(ClusterError):
    """The API server did not do what the kubelet asked of it."""


class PodGoneError(NotAnsweredError):
    """The pod is not there any more."""


class SimulatedKubelet:
    """Of several nodes, given by their drivers' state folders."""

    def __init__(self, cluster: Cluster, drivers: Mapping[str, Path]) -> None:
        self._cluster = cluster
        self._drivers = drivers
        self._pods: dict[str, SimulatedPod] = {}
        self._held: dict[str, int] = {}
        """In MiB, by the uid of each pod that runs."""
        self._wanted: dict[str, str] = {}
        """The annotation that was heeded last, by uid."""
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
                except PodGoneError:
                    # Deleted by somebody else since: its next event says so.
                    continue
                except (ClusterError, OSError, subprocess.SubprocessError) as error:
                    # Of one pod: the others go on.
                    say(f"the simulated kubelet: {error}")

    def _see(self, change: str, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        uid, driver = metadata["uid"], self._drivers.get(pod["spec"].get("nodeName", ""))
        if change == "DELETED":
            self._end(uid)
        elif driver is not None and "deletionTimestamp" in metadata:
            self._end(uid)
            self._confirm_end(pod)
        elif driver is not None and _has_sidecar(pod):
            self._heed(pod, metadata.get("annotations", {}).get(HOLDS, ""), driver)

    def _heed(self, pod: Mapping[str, Any], wanted: str, driver: Path) -> None:
        """Have the pod hold what its annotation says, once for each text."""
        uid = pod["metadata"]["uid"]
        if self._wanted.get(uid, "") == wanted:
            return
        self._wanted[uid] = wanted
        if (mib := _mib(wanted)) is None:
            form = "write whole Gi or Mi, for example 6Gi"
            self._tell(pod, "SimulationNotUnderstood", f"{HOLDS}={wanted!r} is ignored: {form}.")
            return
        held = self._held.get(uid)
        try:
            self._hold(pod, mib, driver)
        except NotAnsweredError:
            # The program has no part in it.
            raise
        except (ClusterError, OSError, ValueError) as error:
            self._end_program(uid)
            after = "it does not run" if held is None else f"it is started again with {held}Mi"
            what = f"The simulated program could not hold {wanted}, and ended; {after}. {error}"
            self._tell(pod, "SimulationOutOfMemory", what)
            if held is not None:
                self._hold(pod, held, driver)

    def _hold(self, pod: Mapping[str, Any], mib: int, driver: Path) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._pods:
            self._pods[uid].hold(mib)
        else:
            self._start(pod, mib, driver)
        self._held[uid] = mib

    def _end(self, uid: str) -> None:
        self._wanted.pop(uid, None)
        self._end_program(uid)

    def _end_program(self, uid: str) -> None:
        self._held.pop(uid, None)
        if uid in self._pods:
            self._pods.pop(uid).end()

    def _confirm_end(self, pod: Mapping[str, Any]) -> None:
        """As a kubelet does once the containers have ended; of this very pod."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": metadata["uid"]},
        }
        self._kubectl("delete", "--raw", path, "-f", "-", input=json.dumps(options))

    def _tell(self, pod: Mapping[str, Any], reason: str, message: str) -> None:
        """An Event, for whoever wrote the annotation."""
        metadata = pod["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "simulation-", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                **{key: metadata[key] for key in ("namespace", "name", "uid")},
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "simulated-kubelet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._kubectl("create", "-f", "-", input=json.dumps(event))

    def _kubectl(self, *arguments: str, input: str | None = None) -> str:
        """What it prints. Raises PodGoneError, or ClusterError for another failure."""
        try:
            return self._cluster.kubectl(*arguments, input=input).stdout
        except ClusterError as error:
            if "notfound" in str(error).lower().replace(" ", ""):
                raise PodGoneError(str(error)) from None
            raise NotAnsweredError(str(error)) from None

    def _start(self, pod: Mapping[str, Any], mib: int, driver: Path) -> None:
        metadata = pod["metadata"]
        name, where = metadata["name"], ("-n", metadata["namespace"])
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={name}")
        account = pod["spec"]["serviceAccountName"]
        made = self._kubectl(
            "create", "token", account, f"--audience={_AUDIENCE}", _DURATION, *bound, *where
        )
        folder = Path(tempfile.mkdtemp(prefix=f"{metadata['uid']}-", dir=self._folder))
        self._pods[metadata["uid"]] = SimulatedPod(
            pod, mib, token=made.strip(), driver=driver, folder=folder
        )
        patch = json.dumps({"status": _running(pod)})
        self._kubectl("patch", "pod", name, "--subresource=status", "-p", patch, *where)


def _has_sidecar(pod: Mapping[str, Any]) -> bool:
    return any(one["name"] == SIDECAR for one in pod["spec"].get("initContainers", ()))


def _mib(quantity: str) -> int | None:
    """MiB of `6Gi` or `512Mi`; None for anything else."""
    number, unit = quantity[:-2], quantity[-2:]
    known = unit in _MIB_BY_UNIT and number.isdecimal()
    return int(number) * _MIB_BY_UNIT[unit] if known else None


def _running(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a pod whose containers run."""
    spec = pod["spec"]
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "initContainerStatuses": [_of_init(one) for one in spec.get("initContainers", ())],
        "containerStatuses": [container_status(one) for one in spec["containers"]],
    }


def _of_init(container: Mapping[str, Any]) -> dict[str, Any]:
    stays = container.get("restartPolicy") == "Always"
    return container_status(container) if stays else finished_status(container)
