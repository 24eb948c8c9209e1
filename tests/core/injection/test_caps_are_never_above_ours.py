"""The lower cap wins; what means unlimited or can not be compared in bytes counts as above."""

from __future__ import annotations

import pytest

from builders import (
    GIB,
    admitted,
    container,
    env,
    from_secret,
    gib,
    mig_container,
    pod,
    policy,
    refused,
    review,
    variables,
)
from gpumem_operator import names

CUPY, MPS = names.CUPY_LIMIT_ENV, names.MPS_LIMIT_ENV
OURS = gib(7)
"""The limit of 8Gi less the context reserve of 1Gi."""


def cupy_with(value: str, existing: str = "Merge") -> str | None:
    raw = pod(container(env=env(CUPY_GPU_MEMORY_LIMIT=value), memory="8Gi"))
    return variables(admitted(raw, policy(injection={"existingEnv": existing})))[CUPY]


@pytest.mark.parametrize("existing", ["Merge", "Keep", "Override"])
class TestCupy:
    def test_it_is_the_limit_less_the_reserve_in_bytes(self, existing: str) -> None:
        raw = pod(container(memory="8Gi"))
        found = variables(admitted(raw, policy(injection={"existingEnv": existing})))
        assert found[CUPY] == OURS

    @pytest.mark.parametrize("value", ["1", gib(6), str(7 * GIB - 1)])
    def test_a_lower_one_wins(self, value: str, existing: str) -> None:
        assert cupy_with(value, existing) == value

    @pytest.mark.parametrize(
        "value",
        [
            *(gib(7), gib(8), str(10**18), "9" * 19, "9" * 5000, "0", "00", ""),
            *("50%", "0%", "7Gi", "6GiB", "-1", "1e3", "1_000", " 1", "٣", "1.5", "garbage"),
        ],
    )
    def test_anything_else_is_replaced(self, value: str, existing: str) -> None:
        assert cupy_with(value, existing) == OURS


def test_a_cap_by_reference_is_replaced_with_a_warning() -> None:
    raw = pod(container(env=[from_secret(CUPY)], memory="8Gi"))
    assert variables(admitted(raw, policy()))[CUPY] == OURS
    warned = " ".join(review(raw, policy()).warnings)
    assert f"{CUPY} comes from a reference" in warned
    assert f"replaced by {OURS}" in warned


def test_a_cap_that_refers_to_a_variable_is_replaced() -> None:
    raw = pod(container(env=env(A="1", CUPY_GPU_MEMORY_LIMIT="$(A)"), memory="8Gi"))
    assert variables(admitted(raw, policy()))[CUPY] == OURS


def test_the_reserve_is_the_policy_s() -> None:
    limits = {"contextReserve": "512Mi"}
    assert variables(admitted(pod(container(memory="8Gi")), policy(limits=limits)))[CUPY] == gib(
        7.5
    )


@pytest.mark.parametrize(
    "raw",
    [pod(), pod(mig_container())],
    ids=["a whole GPU", "a MIG slice of which nobody wants less"],
)
def test_without_a_limit_below_the_card_there_is_no_cap(raw: dict[str, object]) -> None:
    found = variables(admitted(raw, policy()))
    assert not {CUPY, MPS} & found.keys()


def test_without_a_limit_the_author_s_cap_stays_as_it_is() -> None:
    raw = pod(container(env=env(CUPY_GPU_MEMORY_LIMIT="50%")))
    assert variables(admitted(raw, policy()))[CUPY] == "50%"


class TestMps:
    """`0=8192M,1=8192M`: one entry for each ordinal that the container sees."""

    def mps_with(self, value: str | None, gpus: int = 2) -> str | None:
        entries = [] if value is None else env(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=value)
        raw = pod(container(env=entries, gpus=gpus, memory=f"{8 * gpus}Gi"))
        return variables(admitted(raw, policy()))[MPS]

    def test_every_ordinal_has_the_whole_limit(self) -> None:
        assert self.mps_with(None) == "0=8192M,1=8192M"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("0=4G", "0=4096M,1=8192M"),
            ("0=4G,1=2048M", "0=4096M,1=2048M"),
            ("1=1048576K", "0=8192M,1=1024M"),
            ("0=4294967296", "0=4096M,1=8192M"),
            (" 0 = 4g , 1=2G ", "0=4096M,1=2048M"),
            ("0=100G,1=100G", "0=8192M,1=8192M"),
            ("0=0,1=0G", "0=8192M,1=8192M"),
            ("", "0=8192M,1=8192M"),
            ("0=50%", "0=8192M,1=8192M"),
            ("GPU-1234=1G", "0=8192M,1=8192M"),
            ("7=1G", "0=8192M,1=8192M"),
            ("0=-1G", "0=8192M,1=8192M"),
            ("0=1K", "0=8192M,1=8192M"),
            ("all of it", "0=8192M,1=8192M"),
            ("9" * 5000, "0=8192M,1=8192M"),
        ],
    )
    def test_the_lower_one_wins_for_each_ordinal(self, value: str, expected: str) -> None:
        assert self.mps_with(value) == expected

    def test_a_container_with_very_many_gpus_gets_a_bounded_list(self) -> None:
        raw = pod(container(gpus=4096, memory="7Ei"))
        verdict = review(raw, policy())
        assert verdict.refusal is None
        value = variables(admitted(raw, policy()))[MPS] or ""
        assert len(value.split(",")) == 64


class TestProcessesPerGpu:
    """The annotation says how many processes of a container share one GPU."""

    def raw(self, text: str) -> dict[str, object]:
        annotations = {names.PROCESSES_PER_GPU_ANNOTATION: text}
        return pod(container(memory="8Gi"), annotations=annotations)

    def test_they_share_the_limit(self) -> None:
        found = variables(admitted(self.raw("2"), policy()))
        assert found[MPS] == "0=4096M"
        assert found[CUPY] == gib(3)
        assert found[names.PROCESSES_PER_GPU_ENV] == "2"
        assert found[names.LIMIT_BYTES_ENV] == gib(8)

    def test_one_is_not_worth_a_variable(self) -> None:
        assert names.PROCESSES_PER_GPU_ENV not in variables(admitted(self.raw("1"), policy()))

    def test_so_many_that_the_reserve_eats_the_limit_are_refused(self) -> None:
        text = refused(self.raw("8"), policy())
        assert "leaves 1Gi on a GPU for each of 8 processes, and 1Gi of it is reserved" in text

    @pytest.mark.parametrize("text", ["0", "65", "-1", "two", "", "1.5", "9" * 5000])
    def test_anything_but_a_small_number_is_refused(self, text: str) -> None:
        assert "is not a whole number from 1 to 64: give the number" in refused(
            self.raw(text), policy()
        )
