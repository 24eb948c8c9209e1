"""`python -m bench.sidecar`: what the sidecar itself takes, on a simulated driver.

The whole program as in a pod: NVML, one process on one card, reports over TLS to a leader, the
probe's port.
"""

import argparse
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.cost import rss_mib
from bench.cpu import cpu_percent
from bench.report import Cost
from devcluster.pki import Authority
from devcluster.roleprocess import free_ports
from devcluster.simulated_driver import (
    Allocation,
    Driver,
    create_state,
    environment,
    numbered_device,
)

SIDECAR = Path(__file__).parents[1] / "sidecar"
INTERVAL_SECONDS = 5
SETTLE_SECONDS = 5.0
ANSWER = b'{"schemaVersion": 1, "next": "Any", "limits": [], "orders": []}'


def measure(*, quick: bool = False) -> list[Cost]:
    """RSS after the start, and the share of a core over a minute (quick: 10 seconds)."""
    with tempfile.TemporaryDirectory() as folder, _leader(Path(folder)) as leader:
        state = create_state(Path(folder) / "driver", Driver((numbered_device(0),)))
        with Allocation(state, "0", 8192), _sidecar(state, leader) as process:
            time.sleep(SETTLE_SECONDS)
            rss = rss_mib(process.pid)
            percent = cpu_percent(process.pid, 10 if quick else 60)
            later = rss_mib(process.pid)
    return [
        Cost("RSS after the start", rss, "MiB", 25),
        Cost("RSS later", later, "MiB", 25),
        Cost(f"CPU at one sample per {INTERVAL_SECONDS} s", percent, "% of a core", 0.1),
    ]


def as_markdown(costs: Sequence[Cost]) -> str:
    lines = ["| sidecar, simulated driver | value | target |", "|---|---|---|"]
    for cost in costs:
        verdict = "met" if cost.good else "MISSED"
        lines.append(
            f"| {cost.what} | {cost.value:.3f} {cost.unit} | <= {cost.target:g}: {verdict} |"
        )
    return "\n".join(lines)


def write(costs: Sequence[Cost], folder: Path) -> Path:
    """The same as JSON; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sidecar.json"
    rows = [asdict(cost) | {"good": cost.good} for cost in costs]
    path.write_text(json.dumps(rows, indent=2) + "\n")
    return path


@contextmanager
def _sidecar(state: Path, leader: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    [port] = free_ports(1)
    variables = environment(state) | leader
    variables |= {"PYTHONPATH": str(SIDECAR), "GPUMEM_HEALTH_PORT": str(port)}
    variables["GPUMEM_INTERVAL_SECONDS"] = str(INTERVAL_SECONDS)
    # As the agent: it sees the process without a PID namespace, which would need root.
    command = [sys.executable, "-m", "gpumem_sidecar", "--agent"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _leader(folder: Path) -> Iterator[dict[str, str]]:
    """Takes every report; yields what a sidecar has to know of it."""
    authority = Authority()
    authority.server("leader", dns=[], addresses=["127.0.0.1"]).write(folder, "leader")
    (folder / "token").write_text("token")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leader.crt", folder / "leader.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "GPUMEM_REPORT_URL": f"https://127.0.0.1:{server.server_address[1]}/v1/reports",
            "GPUMEM_REPORT_CA": authority.pair.certificate.decode(),
            "GPUMEM_REPORT_TOKEN_FILE": str(folder / "token"),
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sidecar", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 seconds: does it run at all?")
    print(as_markdown(measure(quick=parser.parse_args().quick)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
