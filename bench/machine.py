"""Where and with what the figures were measured: without it they mean nothing."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from devcluster import Cluster


def describe(cluster: Cluster) -> dict[str, str]:
    """Date, machine and versions."""
    load = os.getloadavg()[0]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{os.cpu_count()} cores, {_cpu_model()}",
        "load before": f"{load:.1f}",
        "Kubernetes": _server_version(cluster),
        "Python": platform.python_version(),
        "kopf": version("kopf"),
        "aiohttp": version("aiohttp"),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _server_version(cluster: Cluster) -> str:
    for line in cluster.kubectl("version").stdout.splitlines():
        if line.startswith("Server Version:"):
            return line.partition(":")[2].strip()
    return "unknown"
