"""A native sidecar: probed while the pod lives, and gone at once when the pod ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from devcluster.pki import Authority
from devcluster.roleprocess import free_ports
from leader import leading
from patience import PATIENCE_SECONDS
from shimmed import SIDECAR


def environment(port: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SIDECAR), "GPUMEM_HEALTH_PORT": port}


@contextmanager
def sidecar(port: int) -> Iterator[subprocess.Popen[str]]:
    """A sidecar that listens."""
    command = [sys.executable, "-m", "gpumem_sidecar"]
    with subprocess.Popen(
        command, env=environment(str(port)), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until_it_listens(process, port)
            yield process
        finally:
            process.kill()


def wait_until_it_listens(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    pytest.fail(f"the sidecar does not listen; status {process.poll()}")


def test_it_answers_its_probe_on_both_families() -> None:
    [port] = free_ports(1)
    with sidecar(port):
        for host in ("127.0.0.1", "[::1]") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=5) as answer:
                assert (answer.status, answer.read()) == (200, b"ok\n")
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=5)
        caught.value.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_within_a_second_also_with_a_silent_client(number: signal.Signals) -> None:
    [port] = free_ports(1)
    with sidecar(port) as process, socket.create_connection(("127.0.0.1", port)):
        process.send_signal(number)

        assert process.wait(timeout=PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1"])
def test_a_port_that_is_none_is_told(text: str) -> None:
    command = [sys.executable, "-m", "gpumem_sidecar"]

    result = subprocess.run(command, env=environment(text), capture_output=True, text=True)

    assert result.returncode == 2
    assert f"GPUMEM_HEALTH_PORT is '{text}'" in result.stderr


def test_a_port_that_is_taken_is_told_with_the_next_step() -> None:
    with socket.create_server(("", 0)) as other:
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "gpumem_sidecar"]

        result = subprocess.run(command, env=environment(port), capture_output=True, text=True)

    assert result.returncode == 1
    assert f"port {port} can not be served" in result.stderr
    assert "Next step" in result.stderr


def test_it_answers_its_probe_while_others_keep_connections_open() -> None:
    [port] = free_ports(1)
    with sidecar(port) as process, ExitStack() as silent:
        for _ in range(200):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            assert answer.status == 200
        assert len(os.listdir(f"/proc/{process.pid}/task")) < 50


def test_it_reports_although_nobody_reads_its_log_any_more(tmp_path: Path) -> None:
    authority = Authority()
    token = tmp_path / "token"
    token.write_text("first")
    reader, writer = os.pipe()
    os.close(reader)
    with leading(tmp_path, authority) as leader:
        variables = environment(str(free_ports(1)[0])) | {
            "GPUMEM_REPORT_URL": leader.url,
            "GPUMEM_REPORT_CA": authority.pair.certificate.decode(),
            "GPUMEM_REPORT_TOKEN_FILE": str(token),
        }
        command = [sys.executable, "-m", "gpumem_sidecar"]
        process = subprocess.Popen(command, env=variables, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        with process:
            try:
                leader.wait_for(1)
            finally:
                process.kill()
