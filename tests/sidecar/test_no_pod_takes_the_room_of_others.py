"""What one pod's programs claim costs no other pod its claims: neither to read nor to send."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.intake.bodies import BYTES_OF_OBJECT as LEADERS_BYTES_OF_OBJECT
from gpumem_operator.intake.server import LARGEST_OF_AGENT, LARGEST_OF_SIDECAR
from gpumem_operator.reports.report import Report
from gpumem_sidecar.attribution import Sender
from gpumem_sidecar.claims_that_fit import claims_that_fit
from gpumem_sidecar.picture import Framework, Gpu, Picture, Process, Shim
from gpumem_sidecar.report import BYTES_OF_OBJECT, MOST_BYTES, Header, encode, full
from gpumem_sidecar.run_folder import (
    LARGEST_FILE,
    MOST_NAMES,
    OF_ONE_POD,
    Allowance,
    RunFolder,
)

GPUS = tuple(f"GPU-51350000-0000-4000-8000-00000000000{n}" for n in range(8))
HONEST, HEAVY, OTHER = (f"98327e90-1f43-4a7a-bd17-ff53fda592c{n}" for n in range(3))
TORCH = Shim((Framework("torch", "2.9.0"),), 8 * 2**30)
CONTAINER = "containerd://" + "ab" * 32


def of(pod: str, claim: Shim | None, processes: int, gpus: tuple[str, ...] = GPUS) -> list[Process]:
    return [
        Process(100_000 + n, gpu, 430_000_000 + n, pod, "main", CONTAINER, 545259520, shim=claim)
        for n in range(processes)
        for gpu in gpus
    ]


def sent(*processes: Process, sender: Sender = "NodeAgent") -> tuple[bytes, Report]:
    gpus = tuple(Gpu(gpu, n) for n, gpu in enumerate(GPUS))
    picture = Picture("580", None, gpus, processes)
    body = encode(full(Header(sender, "ab" * 16, 1, 1), picture))
    assert len(body) <= MOST_BYTES[sender]
    assert body.count(b"{") <= MOST_BYTES[sender] // BYTES_OF_OBJECT
    return body, Report.model_validate_json(body)


def test_the_room_is_what_the_leader_has() -> None:
    assert MOST_BYTES == {"Sidecar": LARGEST_OF_SIDECAR, "NodeAgent": LARGEST_OF_AGENT}
    assert BYTES_OF_OBJECT == LEADERS_BYTES_OF_OBJECT


@pytest.mark.parametrize(
    "letter", ["x", "\N{GRINNING FACE}", "{"], ids=["letters", "emoji", "braces"]
)
def test_the_claims_of_the_pod_that_claims_most_are_left_out_and_nobody_elses(letter: str) -> None:
    large = Shim(tuple(Framework(letter * 253, letter * 253) for _ in range(15)))
    _, report = sent(*of(HONEST, TORCH, 1), *of(OTHER, TORCH, 20), *of(HEAVY, large, 100))
    told = {(one.pod_uid, one.shim is not None, one.shim_left_out) for one in report.processes}
    assert told == {(HONEST, True, False), (OTHER, True, False), (HEAVY, False, True)}


def test_letters_are_sent_as_they_are_in_the_file() -> None:
    name = "\N{GRINNING FACE}" * 100
    body, report = sent(*of(HONEST, Shim((Framework(name, None),)), 1))
    assert name.encode() in body
    assert report.processes[0].shim is not None
    assert report.processes[0].shim.frameworks[0].name == name


def test_half_a_letter_in_a_name_from_elsewhere_costs_no_report() -> None:
    picture = Picture("580\ud800", None, (Gpu("GPU-0", 0, "model \udfff"),))
    body = encode(full(Header("NodeAgent", "first", 1, 1), picture))
    assert Report.model_validate_json(body).driver_version == "580?"


def test_a_sidecar_may_tell_of_a_thousand_processes() -> None:
    without_names = [one._replace(container=None) for one in of(HONEST, None, 1000, GPUS[:1])]
    _, report = sent(*without_names, sender="Sidecar")
    assert (len(report.processes), report.processes_left_out) == (1000, 0)


WEIGHTS = st.dictionaries(st.none() | st.sampled_from("abcdefgh"), st.integers(1, 1000), min_size=1)
Weights = dict[str | None, int]


@given(WEIGHTS, st.integers(-10, 3000))
def test_what_fits_fits_and_an_even_part_of_the_room_is_everybodys(
    weights: Weights, room: int
) -> None:
    fitting = claims_that_fit(weights.items(), room)
    assert sum(weights[pod] for pod in fitting) <= max(room, 0)
    assert fitting >= {pod for pod, weight in weights.items() if weight * len(weights) <= room}


@given(WEIGHTS, st.integers(0, 3000))
def test_no_heavier_pod_is_in_where_a_lighter_one_is_out(weights: Weights, room: int) -> None:
    fitting = claims_that_fit(weights.items(), room)
    lightest_out = min((weights[pod] for pod in weights.keys() - fitting), default=1000)
    assert all(weights[pod] <= lightest_out for pod in fitting)


def write_state(folder: Path, pid: int, *, padding: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = {"schemaVersion": 1, "pid": pid, "startTime": 1, "container": "x", "x": "x" * padding}
    (folder / f"{pid}-1.json").write_text(json.dumps(state))


def test_files_that_nobody_asked_for_cost_nothing_and_hide_nobody(tmp_path: Path) -> None:
    """More of them than any bounded listing has room for."""
    write_state(tmp_path / "main", 7)
    for n in range(MOST_NAMES + 1):
        os.close(os.open(tmp_path / "main" / f"{n + 10}-1.json", os.O_CREAT))
    folder = RunFolder(str(tmp_path))
    found = folder.of({(7, 1)}, Allowance(opens=1))
    assert [state.pid for state in found.states] == [7]
    assert (found.unread, folder.ignored) == (frozenset(), 0)


def test_whose_file_was_looked_for_in_vain_is_known_to_have_none(tmp_path: Path) -> None:
    write_state(tmp_path / "a", 7)
    write_state(tmp_path / "b", 8)
    found = RunFolder(str(tmp_path)).of({(7, 1), (8, 1), (9, 1)})
    assert {(state.pid, state.container) for state in found.states} == {(7, "a"), (8, "b")}
    assert found.unread == frozenset()


@pytest.mark.parametrize(
    "allowance",
    [Allowance(opens=3), Allowance(bytes=3 * (LARGEST_FILE - 200))],
    ids=["attempts", "bytes"],
)
def test_for_whose_file_the_allowance_was_too_small_is_said(
    tmp_path: Path, allowance: Allowance
) -> None:
    pids = range(1, 6)
    for pid in pids:
        write_state(tmp_path / "main", pid, padding=LARGEST_FILE - 200)
    found = RunFolder(str(tmp_path)).of({(pid, 1) for pid in pids}, allowance)
    read = {(state.pid, 1) for state in found.states}
    assert len(read) == 3
    assert found.unread == {(pid, 1) for pid in pids} - read


@given(st.integers(0, 500), st.integers(0, 2**20), st.integers(0, 2**24))
def test_the_allowances_of_all_pods_are_that_of_the_node(pods: int, opens: int, size: int) -> None:
    node = Allowance(opens, size)
    each = OF_ONE_POD.within(node, pods)
    assert each.opens * pods <= node.opens
    assert each.bytes * pods <= node.bytes
    assert each.opens <= OF_ONE_POD.opens
    assert each.bytes <= OF_ONE_POD.bytes
