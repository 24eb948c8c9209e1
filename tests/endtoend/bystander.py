"""A watcher that knows nothing of the operator: it sums what may run in a namespace, by kubectl."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from devcluster import Cluster
from patience import PATIENCE_SECONDS


class Bystander:
    """What may run now, in Gi of the memory resource, and the most that it ever was.

    Whoever waits for something fails at once where it is more than `limit`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._running: dict[str, tuple[str, int]] = {}
        """By uid, name and Gi of pods without any gate that have not finished."""
        self._ever: set[str] = set()
        self.names: set[str] = set()
        """Of all pods that were ever seen, whether they may run or not."""
        self.most = 0
        self.events = 0

    def see(self, event: dict[str, Any]) -> None:
        metadata, spec = event["object"]["metadata"], event["object"]["spec"]
        phase = event["object"].get("status", {}).get("phase")
        gone = event["type"] == "DELETED" or phase in ("Succeeded", "Failed")
        with self._changed:
            self.names.add(metadata["name"])
            if gone or spec.get("schedulingGates"):
                self._running.pop(metadata["uid"], None)
            else:
                self._running[metadata["uid"]] = (metadata["name"], _gibs(spec))
                self._ever.add(metadata["uid"])
            self.events += 1
            self.most = max(self.most, self.sum)
            self._changed.notify_all()

    @property
    def sum(self) -> int:
        return sum(gibs for _, gibs in self._running.values())

    @property
    def let_through(self) -> int:
        """Pods that were ever seen to be allowed to run."""
        return len(self._ever)

    def running(self) -> list[str]:
        """Names, those that came first at the beginning."""
        with self._changed:
            return [name for name, _ in self._running.values()]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.most > self._limit or condition(), PATIENCE_SECONDS)
            assert self.most <= self._limit, f"{self.most} Gi were let through at once"
            assert condition(), (
                f"{self.sum} Gi may run, {self.let_through} pods were let through and"
                f" {len(self.names)} were seen"
            )


def _gibs(spec: dict[str, Any]) -> int:
    limits = (container["resources"].get("limits", {}) for container in spec["containers"])
    amounts = [found.get("nvidia.com/memory", "0Gi") for found in limits]
    assert all(amount.endswith("Gi") for amount in amounts), amounts
    return sum(int(amount.removesuffix("Gi")) for amount in amounts)


@contextmanager
def standing_by(cluster: Cluster, namespace: str, *, limit: int) -> Iterator[Bystander]:
    """Watches from before the first pod: a pod of its own, which asks for nothing, proves it."""
    bystander = Bystander(limit)
    watch = _Watch(cluster, f"/api/v1/namespaces/{namespace}/pods", bystander)
    reader = threading.Thread(target=watch.run)
    reader.start()
    try:
        first = {"name": "first", "image": "none"}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "first"},
            "spec": {"containers": [first]},
        }
        cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(body))
        bystander.wait_for(lambda: "first" in bystander.names)
        yield bystander
        assert reader.is_alive(), "the watch has ended"
    finally:
        watch.end()
        reader.join()


class _Watch:
    """Every event from one resourceVersion on: the API server ends the watch of a client that is
    slow, as all are on a busy machine, and the next one goes on where the last one ended."""

    def __init__(self, cluster: Cluster, path: str, bystander: Bystander) -> None:
        self._cluster = cluster
        self._path = path
        self._bystander = bystander
        listed = json.loads(cluster.kubectl("get", "--raw", f"{path}?limit=1").stdout)
        self._version: str = listed["metadata"]["resourceVersion"]
        self._process = self._start()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            with self._process as process:
                assert process.stdout is not None
                self._read(process.stdout)
            if not self._over.wait(0.2):
                self._process = self._start()
        # One that was started just when it was to end.
        with self._process as process:
            process.kill()

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            if not line.endswith(b"\n"):
                break  # cut off: the next watch begins with it
            event = json.loads(line)
            assert event["type"] != "ERROR", event
            self._version = event["object"]["metadata"]["resourceVersion"]
            self._bystander.see(event)

    def end(self) -> None:
        self._over.set()
        self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        query = f"watch=true&resourceVersion={self._version}"
        return self._cluster.watch("get", "--raw", f"{self._path}?{query}")
