"""Reports taken in per second and core: real tokens of real pods, the leader as it is installed.

    python -m bench.reports [--quick]

Processor time is read from /proc, so that it does not matter what else the machine does, nor that
the senders share it. Two ways to send: over connections that stay open, and over a new one for
each report.
"""

import asyncio
import json
import ssl
import sys
import time
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp

from bench.cost import cpu_seconds
from bench.costs import main
from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_operator.kube.api import Api, connect
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import NODES, PODS, SERVICE_ACCOUNTS

TARGET_PER_CORE = 1000.0
NAMESPACE = "bench"
NODE = "bench-reports"
GPU = "GPU-11111111-0000-0000-0000-000000000001"


@dataclass(frozen=True)
class Rate:
    """One way to send."""

    what: str
    reports: int
    seconds: float
    cpu_seconds: float
    """Of the controller's process; the API server's are not in it."""

    @property
    def per_core(self) -> float:
        """Reports per second of processor time."""
        return self.reports / self.cpu_seconds


@dataclass(frozen=True)
class Pod:
    """One sender."""

    uid: str
    token: str


def measure(cluster: Cluster, operator: Installation, *, quick: bool = False) -> list[Rate]:
    """Send from 40 pods, or from 800; each sends 10 reports over its connection and 2 without."""
    return asyncio.run(_measure(cluster, operator, 40 if quick else 800))


async def _measure(cluster: Cluster, operator: Installation, count: int) -> list[Rate]:
    # It listens once it has a certificate, so the Secret with the CA is filled by then.
    await _until_it_listens(operator.report_ports[0])
    async with connect(cluster.kubeconfig) as api:
        await api.create("/api/v1/namespaces", _object("Namespace", NAMESPACE))
        await api.create(NODES.path(), _object("Node", NODE))
        pods = await _pods(api, count)
        secret = f"{operator.release}-webhook-cert"
        path = f"/api/v1/namespaces/{operator.namespace}/secrets/{secret}"
        ca = b64decode((await api.get(path))["data"]["ca.crt"]).decode()
    context = ssl.create_default_context(cadata=ca)
    url = f"https://127.0.0.1:{operator.report_ports[0]}/v1/reports"
    (pid,) = operator.controller_pids
    await _send(url, context, pods, numbers=range(1))
    return [
        await _timed("connection kept", pid, url, context, pods=pods, numbers=range(1, 11)),
        await _timed("new connection", pid, url, None, pods=pods, numbers=range(11, 13), ca=ca),
    ]


async def _until_it_listens(port: int) -> None:
    """A controller is ready before it leads, and takes reports in only when it does."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return


async def _pods(api: Api, count: int) -> list[Pod]:
    turns = asyncio.Semaphore(16)

    async def one(number: int) -> Pod:
        async with turns:
            return await _pod(api, f"sender-{number}")

    await _default_account(api)
    return list(await asyncio.gather(*map(one, range(count))))


async def _default_account(api: Api) -> None:
    """Wait until the namespace has it: without, no pod may be created."""
    while True:
        try:
            await api.get(SERVICE_ACCOUNTS.path("default", namespace=NAMESPACE))
            return
        except ApiError:
            await asyncio.sleep(0.1)


async def _pod(api: Api, name: str) -> Pod:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/memory": "8Gi"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    # Nothing else is heard: a pod on a node, with our sidecar.
    sidecar = {"name": names.SIDECAR_CONTAINER, "image": "none", "restartPolicy": "Always"}
    spec = {
        "nodeName": NODE,
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [sidecar],
        "containers": [container],
    }
    body = _object("Pod", name) | {"spec": spec}
    body["metadata"]["labels"] = {names.MANAGED_LABEL: "true"}
    uid = (await api.create(PODS.path(namespace=NAMESPACE), body))["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [names.TOKEN_AUDIENCE], "boundObjectRef": bound},
    }
    account = SERVICE_ACCOUNTS.path("default", namespace=NAMESPACE, subresource="token")
    return Pod(uid, (await api.create(account, request))["status"]["token"])


def _object(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


async def _timed(
    what: str,
    pid: int,
    url: str,
    context: ssl.SSLContext | None,
    *,
    pods: Sequence[Pod],
    numbers: range,
    ca: str = "",
) -> Rate:
    began, spent = time.monotonic(), cpu_seconds(pid)
    await _send(
        url,
        context or ssl.create_default_context(cadata=ca),
        pods,
        numbers=numbers,
        keep=context is not None,
    )
    return Rate(
        what,
        len(pods) * len(numbers),
        time.monotonic() - began,
        cpu_seconds(pid) - spent,
    )


async def _send(
    url: str,
    context: ssl.SSLContext,
    pods: Sequence[Pod],
    *,
    numbers: range,
    keep: bool = True,
) -> None:
    """Every pod's reports, one after the other; 16 are under way at any time."""
    connector = aiohttp.TCPConnector(ssl=context, limit=16, force_close=not keep)
    async with aiohttp.ClientSession(connector=connector) as session:
        for number in numbers:
            await asyncio.gather(*(_send_one(session, url, pod, number) for pod in pods))


async def _send_one(session: aiohttp.ClientSession, url: str, pod: Pod, number: int) -> None:
    headers = {"Authorization": f"Bearer {pod.token}", "Content-Type": "application/json"}
    async with session.post(url, data=_report(pod, number), headers=headers) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {await answer.text()}")
        await answer.read()


def _report(pod: Pod, number: int) -> bytes:
    """A full one, of a pod with two processes on one GPU."""
    shim = {"frameworks": [{"name": "torch", "version": "2.9.0"}], "limitBytes": 8 * 2**30}
    processes = [
        {
            "pid": pid,
            "startTime": 123456,
            "gpu": GPU,
            "podUid": pod.uid,
            "container": "main",
            "containerId": "containerd://" + "0" * 64,
            "bytes": 2**30 + number * 2**20,
            "unknown": None,
            "shim": shim,
        }
        for pid in (100, 101)
    ]
    card = {
        "uuid": GPU,
        "index": 0,
        "model": "NVIDIA H200",
        "totalBytes": 80 * 2**30,
        "reservedBytes": 2**30,
        "usedBytes": 3 * 2**30,
    }
    report = {
        "schemaVersion": 1,
        "sender": "Sidecar",
        "senderStart": "bench",
        "sequence": number,
        "ageMilliseconds": 20,
        "kind": "Full",
        "driverVersion": "580.159.04",
        "gpus": [card],
        "processes": processes,
    }
    return json.dumps(report).encode()


def as_markdown(rates: Sequence[Rate]) -> str:
    """A table for people."""
    lines = [
        "| reports taken in | reports | per second | per second and core | target |",
        "|---|---|---|---|---|",
    ]
    for rate in rates:
        kept = rate is rates[0]
        met = "met" if rate.per_core >= TARGET_PER_CORE else "MISSED"
        target = f">= {TARGET_PER_CORE:g}: {met}" if kept else ""
        speed = rate.reports / rate.seconds
        lines.append(
            f"| {rate.what} | {rate.reports} | {speed:.0f} | {rate.per_core:.0f} | {target} |"
        )
    return "\n".join(lines)


def write(rates: Sequence[Rate], folder: Path) -> Path:
    """Write the JSON into the folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "reports.json"
    rows = [asdict(rate) | {"per_core": rate.per_core} for rate in rates]
    path.write_text(json.dumps(rows, indent=2) + "\n")
    return path


def run(*, quick: bool, folder: Path) -> str:
    """Measure on a control plane of its own; returns the table and where the JSON is."""
    with Cluster.start() as cluster, Installation.start(cluster, roles=["controller"]) as operator:
        # No webhook runs: pods are stored as they are sent, which is all that reports need.
        operator.cluster.kubectl(
            "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all"
        )
        rates = measure(cluster, operator, quick=quick)
    return f"{as_markdown(rates)}\n\n{write(rates, folder)}"


if __name__ == "__main__":
    sys.exit(main("reports", __doc__, run))
