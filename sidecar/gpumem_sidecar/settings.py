"""What the environment says. Admission and the chart write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

HEALTH_PORT_ENV = "GPUMEM_HEALTH_PORT"
INTERVAL_ENV = "GPUMEM_INTERVAL_SECONDS"
POD_UID_ENV = "GPUMEM_POD_UID"
PID_NAMESPACE_ENV = "GPUMEM_PID_NAMESPACE"
REPORT_CA_ENV = "GPUMEM_REPORT_CA"
REPORT_CA_FILE_ENV = "GPUMEM_REPORT_CA_FILE"
REPORT_URL_ENV = "GPUMEM_REPORT_URL"
TOKEN_FILE_ENV = "GPUMEM_REPORT_TOKEN_FILE"
RUN_PATH_ENV = "GPUMEM_RUN_PATH"
PODS_PATH_ENV = "GPUMEM_PODS_PATH"
CGROUP_PATH_ENV = "GPUMEM_CGROUP_PATH"
POD_RESOURCES_ENV = "GPUMEM_POD_RESOURCES"
AGENT_ACTIONS_ENV = "GPUMEM_AGENT_ACTIONS"

DEFAULT_HEALTH_PORT = 9433
DEFAULT_INTERVAL_SECONDS = 5.0
MOST_INTERVAL_SECONDS = 60.0
"""The leader takes numbers of more than 90 s for unknown."""
DEFAULT_TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
DEFAULT_RUN_PATH = "/run/gpumem"
DEFAULT_PODS_PATH = "/var/lib/kubelet/pods"
DEFAULT_CGROUP_PATH = "/sys/fs/cgroup"
DEFAULT_POD_RESOURCES = "/var/lib/kubelet/pod-resources/kubelet.sock"

USAGE = """usage: python -m gpumem_sidecar [--agent] [--once]
  --agent  measure the whole node (it needs the node's PID namespace), not one pod
  --once   print one sample as JSON and end"""


class Settings(NamedTuple):
    """All settings; empty texts are absent ones."""

    agent: bool
    once: bool
    health_port: int
    interval_seconds: float
    pod_uid: str
    namespace_of_pod: bool
    """The PID namespace is that of the pod, and nobody else is in it."""
    report_url: str
    report_ca: str
    report_ca_file: str
    token_file: str
    run_path: str
    pods_path: str
    cgroup_path: str
    pod_resources: str
    actions: frozenset[str]
    """What may be done on order."""


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Raises ValueError with a sentence where something is wrong."""
    if unknown := sorted(set(arguments) - {"--agent", "--once"}):
        raise ValueError(f"{unknown[0]!r} is not understood\n{USAGE}")
    get = environment.get
    return Settings(
        agent="--agent" in arguments,
        once="--once" in arguments,
        health_port=_port(get(HEALTH_PORT_ENV) or str(DEFAULT_HEALTH_PORT)),
        interval_seconds=_seconds(get(INTERVAL_ENV) or str(DEFAULT_INTERVAL_SECONDS)),
        pod_uid=get(POD_UID_ENV, ""),
        namespace_of_pod=get(PID_NAMESPACE_ENV) == "Pod",
        report_url=get(REPORT_URL_ENV, ""),
        report_ca=get(REPORT_CA_ENV, ""),
        report_ca_file=get(REPORT_CA_FILE_ENV, ""),
        token_file=get(TOKEN_FILE_ENV) or DEFAULT_TOKEN_FILE,
        run_path=get(RUN_PATH_ENV) or DEFAULT_RUN_PATH,
        pods_path=get(PODS_PATH_ENV) or DEFAULT_PODS_PATH,
        cgroup_path=get(CGROUP_PATH_ENV) or DEFAULT_CGROUP_PATH,
        pod_resources=get(POD_RESOURCES_ENV) or DEFAULT_POD_RESOURCES,
        actions=_actions(get(AGENT_ACTIONS_ENV, ""), agent="--agent" in arguments),
    )


def _actions(text: str, *, agent: bool) -> frozenset[str]:
    if not agent:
        return frozenset({"Reclaim"})
    actions = frozenset(filter(None, text.split(",")))
    if unknown := sorted(actions - {"Reclaim", "Kill"}):
        raise ValueError(f"{AGENT_ACTIONS_ENV} has {unknown[0]!r}: Reclaim and Kill are known")
    return actions


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ValueError(f"{HEALTH_PORT_ENV} is {text!r}, and a port from 1 to 65535 is needed")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 0.1:  # nor is NaN
        raise ValueError(
            f"{INTERVAL_ENV} is {text!r}, and 0.1 to {MOST_INTERVAL_SECONDS:.0f} seconds are needed"
        )
    # Pods that were admitted when more was allowed shall not fail for it.
    return min(seconds, MOST_INTERVAL_SECONDS)
