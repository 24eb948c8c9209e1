"""What holds a limit is said from evidence alone: this table is the specification.

The limit is 8 GiB, the shim caps torch at 7 GiB and keeps 1 GiB beside it, unless a line says
otherwise.
"""

from __future__ import annotations

import pytest

from enforcement_evidence import enforcer, framework, process, row, shim, use
from gpumem_operator.reports import reasons
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.enforcer import Enforcer
from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.pictures import Amount, ProcessReading
from report_builders import GIB, OTHER_GPU, container

SLICE = container(limit=None, profile=10 * GIB)
CARD = container(limit=None, exclusive=True)
BARE = process(claim=None)
IDLE_JAX = framework(None, name="jax", not_capped="NotStarted")
FREE_JAX = framework(None, name="jax", not_capped="Platform")


@pytest.mark.parametrize(
    ("one", "held", "expected"),
    [
        pytest.param(SLICE, "Silent", "Hardware", id="a slice needs no measurement"),
        pytest.param(
            container(limit=10 * GIB, profile=10 * GIB),
            1,
            "Hardware",
            id="a limit of a whole slice",
        ),
        pytest.param(
            container(limit=4 * GIB, profile=10 * GIB), 1, "None: NoShim", id="less than the slice"
        ),
        pytest.param(CARD, "NoReport", "Hardware", id="a card that nobody else gets"),
        pytest.param(
            container(limit=4 * GIB, exclusive=True), 1, "None: NoShim", id="less than the card"
        ),
        pytest.param(container(limit=None), 1, "None: NoLimit", id="nothing declared"),
        pytest.param(
            container(limit=None), "Silent", "Unknown: Silent", id="nothing declared or measured"
        ),
    ],
)
def test_hardware_needs_no_process(one: GpuContainer, held: int | str, expected: str) -> None:
    assert str(enforcer(process(held, claim=None), containers=(one,))) == expected


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        # The driver: read back, for the whole container.
        pytest.param([process(driver=8, claim=None)], "Driver", id="the driver's limit is ours"),
        pytest.param([process(driver=4, claim=None)], "Driver", id="or a smaller one"),
        pytest.param(
            [process(driver=9, claim=None)], "None: NoShim", id="a larger one holds nothing"
        ),
        pytest.param([process(driver=9)], "Framework", id="then the next one is looked at"),
        pytest.param(
            [process(4, driver=8, claim=None), process(3, driver=8, claim=None, pid=2)],
            "Driver",
            id="it is one limit for all processes",
        ),
        pytest.param(
            [process(4, driver=8), process(3, claim=None, pid=2)],
            "None: NoShim",
            id="a process outside the limited cgroup",
        ),
        pytest.param(
            [process("NotAvailable", driver=8)],
            "Driver",
            id="the driver counts where NVML does not",
        ),
        pytest.param([process(9, driver=8)], "None: OverLimit", id="measured use is above it"),
        # MPS: per client.
        pytest.param([process(mps=8, claim=None)], "MPS", id="a client of MPS with its limit"),
        pytest.param(
            [process(mps=8, mps_client=False, claim=None)],
            "None: NoShim",
            id="a limit for MPS in a process that is no client",
        ),
        pytest.param(
            [process(mps_client=True, claim=None)], "None: NoShim", id="a client without a limit"
        ),
        pytest.param([process(mps=9)], "None: OverLimit", id="a client with a larger limit"),
        pytest.param([process(5, mps=4)], "None: OverLimit", id="a client above its own limit"),
        pytest.param(
            [process(3, mps=4), process(3, mps=4, pid=2)], "MPS", id="clients that share the limit"
        ),
        pytest.param(
            [process(3, mps=8), process(3, mps=8, pid=2)],
            "None: SeveralProcesses",
            id="clients that each have all of it",
        ),
        # Frameworks: per process, by the shim's word.
        pytest.param([process()], "Framework", id="a cap and a reserve that fit"),
        pytest.param([process(8)], "Framework", id="all of the limit is held"),
        pytest.param([BARE], "None: NoShim", id="a program without the shim"),
        pytest.param(
            [process(2), process(0.5, claim=None, pid=2)],
            "None: NoShim",
            id="one process with it and one without",
        ),
        pytest.param(
            [process(start_time=None)], "None: NoShim", id="a claim of nobody knows which process"
        ),
        pytest.param(
            [process(claim=shim(framework(8)))], "None: OverLimit", id="a cap without the reserve"
        ),
        pytest.param(
            [process(claim=shim(framework(1000)))], "None: OverLimit", id="a forged, larger cap"
        ),
        pytest.param(
            [process(6, claim=shim(framework(2)))], "None: OverLimit", id="a forged, smaller cap"
        ),
        pytest.param(
            [process(claim=shim(framework(6), outside=2))],
            "Framework",
            id="more beside the allocators, and the cap lowered by as much",
        ),
        pytest.param(
            [process(claim=shim(framework(7), outside=2))],
            "None: OverLimit",
            id="more beside the allocators, and the cap not lowered",
        ),
        pytest.param(
            [process(3, claim=shim(framework(3))), process(3, claim=shim(framework(3)), pid=2)],
            "Framework",
            id="processes that share the limit",
        ),
        pytest.param(
            [process(1), process(1, pid=2)],
            "None: SeveralProcesses",
            id="processes that each have all of it",
        ),
        pytest.param(
            [process(claim=shim(framework(3), framework(4, name="cupy")))],
            "Framework",
            id="two frameworks that share the limit",
        ),
        pytest.param(
            [process(claim=shim(framework(), framework(name="cupy")))],
            "None: OverLimit",
            id="two frameworks that each have all of it",
        ),
        pytest.param(
            [
                process(
                    claim=shim(framework(), framework(None, name="jax", not_capped="NotStarted"))
                )
            ],
            "Framework",
            id="a second framework that does not use the GPU",
        ),
        pytest.param(
            [process(claim=shim(framework(), FREE_JAX))],
            "None: NotCapped",
            id="a second framework that has no cap",
        ),
        pytest.param(
            [process(claim=shim(framework(gpu=OTHER_GPU)))],
            "None: NotCapped",
            id="a cap on another card",
        ),
        pytest.param(
            [process(claim=shim(framework(None, not_capped="NotStarted")))],
            "None: NoFramework",
            id="something else in the process uses the GPU",
        ),
        pytest.param(
            [process(claim=shim(reserve=None))], "None: NotCapped", id="a reserve that nobody tells"
        ),
        pytest.param(
            [process(5), process(4, pid=2)], "None: OverLimit", id="over the limit together"
        ),
        # What is not known.
        pytest.param(
            [process(9, claim=None), process("NotAvailable", pid=2)],
            "None: OverLimit",
            id="what is known is above the limit already",
        ),
        pytest.param([process("NotAvailable")], "Unknown: NotAvailable", id="bytes are not told"),
        pytest.param(
            [process("NotAvailable"), process(1, claim=None, pid=2)],
            "None: NoShim",
            id="not told of one, and nothing holds the other",
        ),
        pytest.param(
            [process(only_claimed=True)], "Unknown: OnlyClaimed", id="nothing but the shim's word"
        ),
    ],
)
def test_processes_decide(processes: list[ProcessReading], expected: str) -> None:
    assert str(enforcer(*processes)) == expected


def test_a_container_without_a_process_holds_nothing_and_shows_nothing() -> None:
    assert str(enforcer(row(held=Amount(0)))) == "Unknown: NoProcess"


def test_a_card_that_nobody_uses_says_nothing_about_the_others() -> None:
    idle = row(gpu=OTHER_GPU, held=Amount(0))
    assert str(enforcer(process(), idle)) == "Framework"
    assert str(enforcer(BARE, idle)) == "None: NoShim"


def test_a_container_is_as_good_as_its_worst_card() -> None:
    other = process(9, gpu=OTHER_GPU, claim=shim(framework(gpu=OTHER_GPU)))
    assert str(enforcer(process(), row(other, gpu=OTHER_GPU))) == "None: OverLimit"
    unread = row(gpu=OTHER_GPU, held=Amount(None, "DeviceLost"))
    assert str(enforcer(process(), unread)) == "Unknown: DeviceLost"


def test_memory_of_no_process_is_counted_where_one_container_has_the_card() -> None:
    managed = row(process(), held=Amount(9 * GIB))
    assert str(enforcer(managed)) == "None: OverLimit"


def test_a_sidecar_s_word_about_the_driver_is_not_taken() -> None:
    assert str(enforcer(process(driver=8, claim=None), source="Sidecar")) == "None: NoShim"


def test_a_pod_is_as_good_as_its_weakest_container() -> None:
    both = (container("card", limit=None, exclusive=True), container())
    assert str(enforcer(process(), containers=both)) == "Framework"
    assert str(enforcer(BARE, containers=both)) == "None: NoShim"
    assert str(enforcer(row(held=Amount(None, "Silent")), containers=both)) == "Unknown: Silent"


def test_a_container_that_asked_for_nothing_and_holds_something_counts() -> None:
    helper = row(process(1, pid=7), name="helper")
    found = enforcers_of(use(process(), helper))
    assert {name: str(one) for name, one in found.items()} == {
        "main": "Framework",
        "helper": "None: NotAsked",
    }
    assert found["helper"].detail == "process 7"


def test_a_process_in_no_container_that_has_a_name_is_not_held_by_anything_known() -> None:
    assert str(enforcer(process(), row(process(1, pid=7), name=""))) == "Unknown: NotAttributed"


def test_the_detail_names_the_process_and_the_amounts() -> None:
    assert enforcer(process(2), process(1, claim=None, pid=4711)).detail == "process 4711"
    assert enforcer(process(1), process(1, pid=2)).detail == (
        "2 processes: caps and reserves allow 16Gi, limit 8Gi"
    )


def test_an_enforcer_is_shown_with_its_reason() -> None:
    assert str(Enforcer("Hardware")) == "Hardware"
    assert str(Enforcer("None", "OverLimit", "process 1")) == "None: OverLimit"


def test_every_reason_of_the_table_has_a_sentence() -> None:
    constants = {name: value for name, value in vars(reasons).items() if isinstance(value, str)}
    told = {value for name, value in constants.items() if name.isupper()}
    assert told <= reasons.REASONS.keys()
