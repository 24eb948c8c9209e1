"""The report's JSON: the same file is tested against the operator's own description of it."""

from __future__ import annotations

import json
from pathlib import Path

from gpumem_operator.reports.report import Report
from gpumem_sidecar.picture import Assignment, Cap, Framework, Gpu, Picture, Process, Server, Shim
from gpumem_sidecar.report import (
    MOST_PROCESSES,
    Acknowledgement,
    Header,
    Room,
    encode,
    full,
    unchanged,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "report.json"
HEADER = Header("NodeAgent", "0d6f6c9a-6a30-4b44-9a53-0f4c3f4b7e11", 17, 1250)
FIRST, SECOND = (f"GPU-11111111-0000-0000-0000-00000000000{n}" for n in (1, 2))
POD = "5f0c8f3e-1111-4222-8333-444455556666"
HELD = 7522484224
PICTURE = Picture(
    "580.159.04",
    None,
    (
        Gpu(FIRST, 0, "NVIDIA H200", None, 150754820096, 644874240, HELD),
        Gpu(SECOND, 1, "NVIDIA H200", unknown="DeviceLost"),
    ),
    (
        Process(
            3311,
            FIRST,
            123456,
            POD,
            "trainer",
            "containerd://" + "0123456789abcdef" * 4,
            HELD,
            shim=Shim(
                (Framework("torch", "2.9.0", (Cap(FIRST, 7516192768),), None, 2, "Supported"),),
                8589934592,
                1073741824,
                1,
                ((FIRST, 744488960),),
                (Server("vllm", "0.33.0", "gpu_memory_utilization", "0.92", "0.0498"),),
            ),
            mps=True,
            mps_limit_bytes=8589934592,
            driver_limit_bytes=8589934592,
        ),
        Process(3312, FIRST, unknown="NotAvailable"),
    ),
    (Assignment("research", "train-0", "trainer", (FIRST,), 1),),
    "Supported",
)


def test_a_full_report_is_the_golden_one() -> None:
    done = [Acknowledgement("a-1", "Done", 1073741824)]
    message = json.loads(encode(full(HEADER, PICTURE, done)))
    golden = json.loads(GOLDEN.read_text())
    message["processes"].sort(key=lambda process: process["pid"])
    assert message == golden


def test_the_operator_reads_every_claim_in_it() -> None:
    report = Report.model_validate_json(GOLDEN.read_bytes())
    shim = report.processes[0].shim
    assert shim is not None
    written = json.loads(GOLDEN.read_text())["processes"][0]["shim"]
    assert shim.model_dump(by_alias=True) == written


def test_an_unchanged_report_has_no_picture() -> None:
    message = encode(unchanged(HEADER, PICTURE))
    report = Report.model_validate_json(message)
    assert (report.kind, report.sequence, report.gpus) == ("Unchanged", 17, [])
    assert len(message) < 300


def test_more_processes_than_the_format_takes_are_cut_and_that_is_said() -> None:
    many = [Process(pid + 1, FIRST, bytes=pid + 1) for pid in range(MOST_PROCESSES + 1)]
    picture = PICTURE._replace(processes=(*many, Process(1, FIRST, unknown="NotAvailable")))
    report = Report.model_validate_json(encode(full(HEADER, picture)))
    assert report.processes_left_out == 2
    assert len(report.processes) == MOST_PROCESSES
    assert report.processes[0].unknown == "NotAvailable", "the unknown ones are not left out"


def test_a_report_without_claims_keeps_every_number_and_says_where_there_was_one() -> None:
    short = Report.model_validate_json(encode(full(HEADER, PICTURE, room=Room(claims=False))))
    claims = {process.pid: (process.shim, process.shim_left_out) for process in short.processes}
    assert claims == {3311: (None, True), 3312: (None, False)}
    assert {process.bytes for process in short.processes} == {HELD, None}
