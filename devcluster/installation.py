"""The operator installed from its chart, with its processes on this machine instead of in pods.

Everything but the containers is real: the chart's manifests, its ServiceAccounts with their RBAC
(each process has its own account's token and nothing else), its settings and the very flags of its
Deployments.
"""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import yaml

from devcluster.balancer import Balancer
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.provided import fill_seal, provide_certificate
from devcluster.roleprocess import PROBE_SECONDS, READY_SECONDS, Role, free_ports, run_role

CHART = Path(__file__).parent.parent / "charts" / "gpu-memory-operator"
RELEASE = "gpu-memory-operator"
NAMESPACE = "gpumem-system"
TOKEN_DURATION = "24h"

Values = Mapping[str, Any]


class Installation:
    """One release of the chart in one cluster, and its processes. Use `Installation.start`."""

    namespace = NAMESPACE
    release = RELEASE

    def __init__(self, cluster: Cluster, *, folder: Path, replicas: Mapping[str, int]) -> None:
        self.cluster = cluster
        self._folder = folder
        self._roles = {
            name: Role(name, replicas=count, folder=folder) for name, count in replicas.items()
        }
        # A single webhook is called directly: nothing stands between where time is measured.
        single = self._roles["webhook"].ports if replicas.get("webhook") == 1 else free_ports(1)
        self._webhook_port = single[0]
        self._values: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def start(
        cls,
        cluster: Cluster,
        *,
        values: Values | None = None,
        roles: Sequence[str] = ("webhook", "controller"),
        webhook_replicas: int = 1,
        controller_replicas: int = 1,
    ) -> Iterator[Self]:
        """Install the chart, start the roles, and wait until a GPU pod would be judged.

        `values` are the chart's. Without the role `controller` nobody makes certificates, so they
        are provided. At the end the processes are ended and the release is taken away.
        Raises ClusterError, with the end of the log where a process did not become ready.
        """
        counts = {"webhook": webhook_replicas, "controller": controller_replicas}
        with ExitStack() as stack:
            prefix = f"{cluster.root}/installation-"
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
            installation = cls(
                cluster, folder=folder, replicas={role: counts[role] for role in roles}
            )
            stack.callback(installation._uninstall)
            installation._install(values or {})
            stack.callback(installation._stop_all)
            if webhook_replicas > 1 and "webhook" in roles:
                ports = installation._roles["webhook"].ports
                stack.callback(Balancer(installation._webhook_port, ports).close)
            installation._start_all()
            yield installation

    # What tests look at

    @property
    def webhook_log(self) -> Path:
        """The log of all replicas of the webhook."""
        return self._roles["webhook"].log

    @property
    def controller_log(self) -> Path:
        """The log of all replicas of the controller."""
        return self._roles["controller"].log

    @property
    def webhook_pids(self) -> list[int]:
        """Process ids of the webhook's replicas that run."""
        return self._roles["webhook"].pids

    @property
    def controller_pids(self) -> list[int]:
        """Process ids of the controller's replicas that run."""
        return self._roles["controller"].pids

    @property
    def controller_ready(self) -> bool:
        """Whether a replica of the controller says that it is."""
        return self._roles["controller"].ready

    @property
    def webhook_url(self) -> str:
        """Where the API server calls; the path of a hook comes behind it."""
        return f"https://127.0.0.1:{self._webhook_port}"

    @property
    def report_ports(self) -> list[int]:
        """Where each replica of the controller takes reports in, at 127.0.0.1, while it leads."""
        return list(self._roles["controller"].ports)

    @property
    def controller_health_ports(self) -> list[int]:
        """Where each replica of the controller serves /healthz, /readyz and /metrics."""
        return list(self._roles["controller"].health_ports)

    def controller_pid_at(self, report_port: int) -> int:
        """Process id of the replica of the controller that takes reports in at this port."""
        return self._roles["controller"].pid_at(report_port)

    def health_urls(self, role: str) -> list[str]:
        """Where each replica of a role serves /healthz, /readyz and /metrics."""
        return [f"http://127.0.0.1:{port}" for port in self._roles[role].health_ports]

    def kubeconfig_of(self, role: str) -> Path:
        """What a role acts with: the token of its ServiceAccount, and nothing else."""
        return self._folder / f"{role}.kubeconfig"

    # What tests do

    def stop_webhook(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End all replicas and wait for their end."""
        self._roles["webhook"].stop(number)

    def start_webhook(self) -> None:
        """Start the replicas that do not run, at their old ports; wait until they are in use."""
        self._roles["webhook"].spawn()
        self._roles["webhook"].wait_until_ready()
        self._wait_for_admission()

    def stop_controller(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End all replicas and wait for their end."""
        self._roles["controller"].stop(number)

    def start_controller(self) -> None:
        """Start the replicas that do not run, and wait until they are ready."""
        self._roles["controller"].spawn()
        self._roles["controller"].wait_until_ready()

    def revive(self) -> dict[str, list[str]]:
        """Start again what ended by itself; how each process ended, by its role. Does not wait."""
        return {role.name: told for role in self._roles.values() if (told := role.revive())}

    def upgrade(self, values: Values) -> None:
        """`helm upgrade` with these values on top of the earlier ones.

        As with Deployments, the processes are replaced only where their settings changed.
        """
        self._values = _merged(self._values, values)
        self._helm("upgrade", RELEASE)
        self.take_settings()

    def take_settings(self) -> None:
        """Replace the processes where somebody's `helm upgrade` changed their settings.

        Raises ClusterError where the settings are gone, or a process does not become ready.
        """
        before = self._settings.read_text()
        self._write_settings()
        if self._settings.read_text() != before:
            self._stop_all()
            self._start_all()

    # Chart

    @property
    def _settings(self) -> Path:
        return self._folder / "settings.yaml"

    def _install(self, values: Values) -> None:
        host = {"operator": {"deploy": False}, "webhook": {"url": self.webhook_url}}
        self._values = _merged(host, values)
        if "webhook" in self._roles and "controller" not in self._roles:
            self._values = _merged(self._values, provide_certificate(self.cluster, NAMESPACE))
        self._helm("install", RELEASE, "--create-namespace")
        if "controller" not in self._roles:
            fill_seal(self.cluster, f"{RELEASE}-seal", NAMESPACE)
        self._write_settings()
        for role in self._roles.values():
            self._write_kubeconfig(role.name)
            role.arguments = [*self._chart_arguments(role.name), *self._host_arguments(role.name)]

    def _helm(self, *arguments: str) -> str:
        values = self._folder / "values.yaml"
        values.write_text(yaml.safe_dump(self._values))
        command, release, *flags = arguments
        where = ("--namespace", NAMESPACE, "--values", values)
        return self.cluster.helm(command, release, CHART, *where, *flags).stdout

    def _write_settings(self) -> None:
        what = ["configmap", f"{RELEASE}-settings", "-n", NAMESPACE, "-o", "json"]
        found = json.loads(self.cluster.kubectl("get", *what).stdout)
        self._settings.write_text(found["data"]["settings.yaml"])

    def _write_kubeconfig(self, role: str) -> None:
        account = [f"{RELEASE}-{role}", "-n", NAMESPACE, f"--duration={TOKEN_DURATION}"]
        token = self.cluster.kubectl("create", "token", *account).stdout.strip()
        self.cluster.kubeconfig_for_token(token, self.kubeconfig_of(role))

    def _chart_arguments(self, role: str) -> list[str]:
        """The flags that the chart gives to this role's container."""
        only = ["--show-only", f"templates/{role}.yaml", "--set", "operator.deploy=true"]
        manifests = yaml.safe_load_all(self._helm("template", RELEASE, *only))
        [deployment] = [found for found in manifests if found["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        arguments: list[str] = container["args"]
        return arguments

    def _host_arguments(self, role: str) -> list[str]:
        """What differs here. Of a flag that is given twice, the later one counts."""
        kubeconfig = self.kubeconfig_of(role)
        here = [f"--kubeconfig={kubeconfig}", f"--settings={self._settings}", "--bind=127.0.0.1"]
        return [*here, "--pod="] if role == "controller" else here

    def _uninstall(self) -> None:
        """`helm uninstall`, and then what the chart did not make."""
        if "controller" in self._roles and self.kubeconfig_of("controller").exists():
            self.open_gates()
        self.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found")
        # The next release's controller would wait for a Lease that nobody gave back.
        kinds = "leases.coordination.k8s.io,secrets"
        self.cluster.kubectl("delete", kinds, "--all", "-n", NAMESPACE, "--ignore-not-found")

    def open_gates(self) -> None:
        """What the chart's own Job does before the release goes; the controller's account may."""
        arguments = [f"--namespace={NAMESPACE}", f"--settings={self._settings}"]
        run_role("uninstall", [*arguments, f"--kubeconfig={self.kubeconfig_of('controller')}"])

    # Processes

    def _start_all(self) -> None:
        for role in self._roles.values():
            role.spawn()
        for role in self._roles.values():
            role.wait_until_ready()
        self._wait_for_admission()

    def _stop_all(self) -> None:
        for role in self._roles.values():
            role.stop()

    def _wait_for_admission(self) -> None:
        """Wait until the API server gets an answer about a GPU pod, whatever the answer is.

        A webhook that is ready is not enough: the API server has to see the CA in the webhook
        configuration first, and after a failed call it may hold on to the failed connection.
        """
        if "webhook" not in self._roles:
            return
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            create = ["create", "--dry-run=server", "-n", "default", "-f", "-"]
            tried = self.cluster.kubectl(*create, input=json.dumps(_GPU_POD), check=False)
            if "failed calling webhook" not in tried.stderr:
                return
            time.sleep(PROBE_SECONDS)
        raise ClusterError(
            f"The API server could not call the webhook within {READY_SECONDS:.0f} s:"
            f" {tried.stderr.strip()}"
        )


_GPU_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "is-admission-there-"},
    "spec": {
        "containers": [
            {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        ]
    },
}


def _merged(base: Values, change: Values) -> dict[str, Any]:
    """Values as helm merges them: maps key by key, everything else replaced."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = _merged(old, value)
        result[key] = value
    return result
