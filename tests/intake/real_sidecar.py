"""The sidecar's own program in a process, on a simulated driver."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster.roleprocess import free_ports
from devcluster.simulated_driver import environment
from intake.senders import Cast
from patience import PATIENCE_SECONDS
from shimmed import SIDECAR


@contextmanager
def running(
    driver: Path, cast: Cast, folder: Path, *, token: str, command: Sequence[str]
) -> Iterator[None]:
    """The sidecar's own program, reporting to whoever leads."""
    (folder / "token").write_text(token)
    [port] = free_ports(1)
    variables: Mapping[str, str] = environment(driver) | {
        "PYTHONPATH": str(SIDECAR),
        "GPUMEM_HEALTH_PORT": str(port),
        "GPUMEM_INTERVAL_SECONDS": "0.5",
        "GPUMEM_PID_NAMESPACE": "Pod",
        "GPUMEM_REPORT_URL": f"https://127.0.0.1:{cast.leader_port()}/v1/reports",
        "GPUMEM_REPORT_CA": cast.ca,
        "GPUMEM_REPORT_TOKEN_FILE": str(folder / "token"),
        "GPUMEM_RUN_PATH": str(folder / "run"),
    }
    process = subprocess.Popen(command, env=variables)
    try:
        yield
    finally:
        # Inside a PID namespace nsenter ends here, and the sidecar with the namespace.
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)
