"""The whole process: simulated driver, shim's state, HTTPS, probe, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from devcluster.pki import Authority
from devcluster.roleprocess import free_ports
from devcluster.sandbox import child_of, new_namespace
from devcluster.simulated_driver import MIB, Fault, environment, write_faults
from gpumem_operator.reports.report import Report
from gpumem_sidecar.outbox import URGENT_SECONDS
from gpumem_sidecar.pulse import HUNG_INTERVALS, Pulse
from leader import Leader, Said, answer, leading
from patience import PATIENCE_SECONDS, eventually
from sampling import OWN_POD
from shimmed import SIDECAR
from simulated_driver.node import Node, needs_namespaces


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver")


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def leader(tmp_path: Path, authority: Authority) -> Iterator[Leader]:
    with leading(tmp_path, authority) as started:
        yield started


@pytest.fixture
def variables(node: Node, leader: Leader, authority: Authority, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "token").write_text("a.bound-token")
    [port] = free_ports(1)
    return environment(node.folder) | {
        "PYTHONPATH": str(SIDECAR),
        "GPUMEM_HEALTH_PORT": str(port),
        "GPUMEM_INTERVAL_SECONDS": "0.1",
        "GPUMEM_POD_UID": OWN_POD,
        "GPUMEM_PID_NAMESPACE": "Pod",
        "GPUMEM_REPORT_URL": leader.url,
        "GPUMEM_REPORT_CA": authority.pair.certificate.decode(),
        "GPUMEM_REPORT_TOKEN_FILE": str(tmp_path / "token"),
        "GPUMEM_RUN_PATH": str(tmp_path / "run"),
    }


@contextmanager
def running(variables: Mapping[str, str], *command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*command, "-m", "gpumem_sidecar"], env=variables, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def holds(said: list[Said], amount: int) -> bool:
    """Whether the last report has one process, with so many bytes."""
    processes = said[-1].report.get("processes", ()) if said else ()
    return [process["bytes"] for process in processes] == [amount]


def test_the_agent_follows_a_process_from_its_start_to_its_end(
    node: Node, leader: Leader, variables: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "gpumem_sidecar", "--agent"]
    agent = subprocess.Popen(command, env=variables)
    try:
        leader.wait_for(1)
        with node.hold(100) as held:
            leader.wait_until(lambda said: holds(said, 100 * MIB))
            held.set(5000)
            leader.wait_until(lambda said: holds(said, 5000 * MIB))
            os.kill(held.pid, signal.SIGKILL)
            leader.wait_until(lambda said: said[-1].report["processes"] == [])
    finally:
        agent.terminate()
        assert agent.wait(timeout=PATIENCE_SECONDS) == 0
    for said in leader.said:
        Report.model_validate_json(json.dumps(said.report))
    assert {said.report["sender"] for said in leader.said} == {"NodeAgent"}


@needs_namespaces
def test_the_sidecar_tells_what_a_process_of_its_pod_holds_and_what_its_shim_says(
    node: Node, leader: Leader, variables: dict[str, str], tmp_path: Path
) -> None:
    with node.hold(100, prefix=new_namespace()) as held:
        host_pid = child_of(held.pid)
        state = tmp_path / "run" / "main"
        state.mkdir(parents=True)
        start = int(Path(f"/proc/{host_pid}/stat").read_text().rpartition(")")[2].split()[19])
        (state / f"{held.pid_inside}-{start}.json").write_text(
            f'{{"schemaVersion": 1, "pid": {held.pid_inside}, "startTime": {start},'
            ' "container": "main", "frameworks": [{"name": "torch", "version": "2.9.0"}]}'
        )
        enter = ("nsenter", "--target", str(host_pid), "--pid", "--mount", sys.executable)
        with running(variables, *enter):
            said = leader.wait_until(lambda said: holds(said, 100 * MIB))[-1]
    [process] = said.report["processes"]
    assert (process["podUid"], process["container"]) == (OWN_POD, "main")
    [framework] = process["shim"]["frameworks"]
    assert (framework["name"], framework["version"]) == ("torch", "2.9.0")
    assert said.headers["Authorization"] == "Bearer a.bound-token"


def test_an_open_order_does_not_wait_for_the_interval(
    leader: Leader, variables: dict[str, str]
) -> None:
    leader.replies = [answer(orders=[{"id": "a-1", "action": "Reclaim"}])]
    with running(variables | {"GPUMEM_INTERVAL_SECONDS": "60"}, sys.executable):
        said = leader.wait_for(2)
    assert said[1].report["acknowledgements"][0]["id"] == "a-1"


def test_between_two_samples_every_report_says_how_old_the_last_one_is(
    leader: Leader, variables: dict[str, str]
) -> None:
    leader.replies = [answer(next="Full")] * 3
    with running(variables | {"GPUMEM_INTERVAL_SECONDS": "60"}, sys.executable):
        said = leader.wait_for(4)
    ages = [one.report["ageMilliseconds"] for one in said]
    assert [one.report["kind"] for one in said] == ["Full"] * 4
    assert all(later - age >= URGENT_SECONDS * 1000 - 1 for age, later in pairwise(ages))


def healthz(variables: Mapping[str, str]) -> int:
    url = f"http://127.0.0.1:{variables['GPUMEM_HEALTH_PORT']}/healthz"
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def test_it_ends_within_a_second_while_nvml_hangs(node: Node, variables: dict[str, str]) -> None:
    write_faults(node.folder, [Fault(function="nvmlDeviceGetCount_v2", hang_milliseconds=60_000)])
    with running(variables, sys.executable) as process:
        eventually(lambda: healthz(variables) == 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0


def test_a_driver_that_was_replaced_is_unhealthy(
    node: Node, leader: Leader, variables: dict[str, str]
) -> None:
    with running(variables, sys.executable):
        leader.wait_for(1)
        assert healthz(variables) == 200
        write_faults(node.folder, [Fault("LIB_RM_VERSION_MISMATCH")])
        eventually(lambda: healthz(variables) == 503)


def test_without_an_address_it_measures_and_is_healthy(
    leader: Leader, variables: dict[str, str]
) -> None:
    with running(variables | {"GPUMEM_REPORT_URL": ""}, sys.executable):
        eventually(lambda: healthz(variables) == 200)
    assert leader.said == []


def test_one_sample_can_be_printed(node: Node, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "gpumem_sidecar", "--agent", "--once"]
    with node.hold(100):
        done = subprocess.run(command, env=variables, capture_output=True, text=True)
    report = Report.model_validate_json(done.stdout)
    assert [process.bytes for process in report.processes] == [100 * MIB]


WRONG: list[tuple[dict[str, str], list[str], str]] = [
    ({"GPUMEM_INTERVAL_SECONDS": "often"}, [], "GPUMEM_INTERVAL_SECONDS is 'often'"),
    ({"GPUMEM_INTERVAL_SECONDS": "0"}, [], "0.1 to 60 seconds"),
    ({"GPUMEM_INTERVAL_SECONDS": "nan"}, [], "0.1 to 60 seconds"),
    ({"GPUMEM_REPORT_URL": "http://leader"}, [], "no https:// address"),
    ({"GPUMEM_REPORT_URL": "https://leader", "GPUMEM_REPORT_CA": "x"}, [], "CA can not be read"),
    ({}, ["--help"], "usage: python -m gpumem_sidecar"),
]


@pytest.mark.parametrize(("changes", "arguments", "message"), WRONG)
def test_a_setting_that_is_wrong_is_told(
    changes: dict[str, str], arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpumem_sidecar", *arguments],
        env=os.environ | {"PYTHONPATH": str(SIDECAR)} | changes,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_a_loop_that_gets_no_answers_is_unhealthy_after_twelve_intervals() -> None:
    now = [0.0]
    pulse = Pulse(5.0, clock=lambda: now[0])
    now[0] = HUNG_INTERVALS * 5.0
    assert pulse.is_alive()
    now[0] += 0.1
    assert not pulse.is_alive()
    pulse.beat()
    assert pulse.is_alive()
