"""`python -m bench.sidecar`: what the sidecar itself takes, on a simulated driver.

The whole program as in a pod: NVML, one process on one card, reports over TLS to a leader, the
probe's port. Beside it runs a process that does the same few milliseconds of work after each sleep:
where that takes many times what it takes at once, so does the sidecar, by the machine's doing.
"""

import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.after_sleep import rounds_of, working
from bench.cost import rss_mib
from bench.costs import Cost, main, table, write
from bench.cpu import cpu_percent
from bench.kubelet import pod_resources
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
START_SECONDS = 120.0
"""For a start on a busy machine."""
ANSWER = b'{"schemaVersion": 1, "next": "Any", "limits": [], "orders": []}'


def measure(*, quick: bool = False) -> list[Cost]:
    """RSS after the start, and the share of a core in each of twelve intervals (quick: two).

    Of the sidecar, and of the agent, which asks a kubelet too.

    The start itself takes more processor time than a minute of work. On a busy machine it takes
    long, so that what counts begins with the second report and not after some seconds.
    """
    times = 2 if quick else 12
    with tempfile.TemporaryDirectory() as folder, _leader(Path(folder)) as (leader, heard):
        state = create_state(Path(folder) / "driver", Driver((numbered_device(0),)))
        socket = Path(folder) / "kubelet.sock"
        with pod_resources(socket):
            asking = leader | {"GPUMEM_POD_RESOURCES": str(socket)}
            return [
                *_costs("sidecar", state, leader, heard, most_rss=25, times=times),
                *_costs("agent", state, asking, heard, most_rss=30, times=times),
            ]


def _costs(
    name: str,
    state: Path,
    variables: dict[str, str],
    heard: threading.Semaphore,
    *,
    most_rss: float,
    times: int,
) -> list[Cost]:
    with Allocation(state, "0", 8192) as held, _sidecar(state, variables) as process:
        for change in (9216, None):
            if not heard.acquire(timeout=START_SECONDS):
                raise RuntimeError(f"the {name} told nothing within {START_SECONDS:g} s")
            if change is not None:
                held.set(change)
        rss = rss_mib(process.pid)
        with working(INTERVAL_SECONDS, times) as beside:
            percents = [cpu_percent(process.pid, INTERVAL_SECONDS) for _ in range(times)]
            rounds = rounds_of(beside)
        later = rss_mib(process.pid)
    while heard.acquire(blocking=False):
        continue  # what this one still said is not the next one's
    return [
        Cost(f"{name}: RSS after the start", rss, "MiB", most_rss),
        Cost(f"{name}: RSS later", later, "MiB", most_rss),
        Cost(
            f"{name}: CPU at one sample per {INTERVAL_SECONDS} s, median interval",
            statistics.median(percents),
            "% of a core",
            0.1,
        ),
        Cost(f"{name}: its slowest interval", max(percents), "% of a core"),
        Cost("not the program's: other work after a sleep, against at once", rounds.ratio, "x"),
    ]


def run(*, quick: bool, folder: Path) -> str:
    """Measure; returns the table and where the JSON is."""
    costs = measure(quick=quick)
    return f"{table('simulated driver', costs)}\n\n{write(costs, folder, 'sidecar')}"


@contextmanager
def _sidecar(state: Path, leader: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    [port] = free_ports(1)
    variables = environment(state) | leader
    variables |= {"PYTHONPATH": str(SIDECAR), "GPUMEM_HEALTH_PORT": str(port)}
    variables.setdefault("GPUMEM_POD_RESOURCES", "/nowhere")
    variables["GPUMEM_INTERVAL_SECONDS"] = str(INTERVAL_SECONDS)
    # As the agent: it sees the process without a PID namespace, which would need root.
    command = [sys.executable, "-m", "gpumem_sidecar", "--agent"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _leader(folder: Path) -> Iterator[tuple[dict[str, str], threading.Semaphore]]:
    """Takes every report; yields what a sidecar has to know, and one release for each report."""
    authority = Authority()
    authority.server("leader", dns=[], addresses=["127.0.0.1"]).write(folder, "leader")
    (folder / "token").write_text("token")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leader.crt", folder / "leader.key")
    heard = threading.Semaphore(0)

    class Handler(_Handler):
        def do_POST(self) -> None:
            super().do_POST()
            heard.release()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        told = {
            "GPUMEM_REPORT_URL": f"https://127.0.0.1:{server.server_address[1]}/v1/reports",
            "GPUMEM_REPORT_CA": authority.pair.certificate.decode(),
            "GPUMEM_REPORT_TOKEN_FILE": str(folder / "token"),
        }
        yield told, heard
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


if __name__ == "__main__":
    sys.exit(main("sidecar", __doc__, run))
