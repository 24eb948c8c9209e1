"""Names of devices, as device plugins choose them, become UUIDs, or are counted as not named."""

from __future__ import annotations

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from gpumem_sidecar.assignments import Device, Given, assignments_of
from gpumem_sidecar.picture import Assignment, Gpu

FIRST, SECOND, DIVIDED = (f"GPU-11111111-0000-0000-0000-00000000000{n}" for n in (1, 2, 3))
SLICE = "MIG-22222222-0000-0000-0000-000000000001"
GPUS = (Gpu(FIRST, 0), Gpu(SECOND, 1), Gpu(DIVIDED, 2), Gpu(SLICE, 0, parent=DIVIDED))
GPU = "nvidia.com/gpu"


LOST = "GPU-51350000-0000-4000-8000-0000000000ff"


def assigned(*devices: Device) -> tuple[tuple[str, ...], int] | None:
    """GPUs and how many could not be named, of one container; None where it has none."""
    found = assignments_of([Given("team", "train", "main", devices)], GPUS)
    return (found[0].gpus, found[0].unnamed) if found else None


@pytest.mark.parametrize(
    ("resource", "name", "uuid"),
    [
        pytest.param(GPU, FIRST, FIRST, id="the UUID of a card"),
        pytest.param("nvidia.com/mig-1g.10gb", SLICE, SLICE, id="the UUID of a MIG instance"),
        pytest.param("nvidia.com/gpu.shared", f"{SECOND}::3", SECOND, id="a replica"),
        pytest.param("nvidia.com/mig-1g.10gb.shared", f"{SLICE}::0", SLICE, id="of an instance"),
        pytest.param(GPU, "1", SECOND, id="an index"),
        pytest.param(GPU, "1::2", SECOND, id="a replica of an index"),
        pytest.param(GPU, "nvidia1", SECOND, id="GKE's card"),
        pytest.param(GPU, "nvidia1/vgpu3", SECOND, id="GKE's share of a card"),
        pytest.param(GPU, LOST, LOST, id="the UUID of a card that NVML does not list"),
        pytest.param("example.com/h200", FIRST, FIRST, id="a UUID under a name of the cluster"),
    ],
)
def test_a_device_is_a_gpu(resource: str, name: str, uuid: str) -> None:
    assert assigned(Device(resource, name)) == ((uuid,), 0)


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        pytest.param(GPU, "7", id="an index that no card has"),
        pytest.param(GPU, "nvidia1/gi3", id="GKE's MIG instance"),
        pytest.param(GPU, "2", id="a card that is divided into instances, by its index"),
        pytest.param(GPU, DIVIDED, id="the same by its UUID"),
        pytest.param("gpu.nvidia.com", "gpu-0", id="a device of a resource claim"),
    ],
)
def test_a_gpu_that_can_not_be_named_is_counted(resource: str, name: str) -> None:
    assert assigned(Device(resource, name)) == ((), 1)
    assert assigned(Device(resource, name), Device(GPU, FIRST)) == ((FIRST,), 1)


def test_a_container_without_gpus_is_not_told_of() -> None:
    assert assigned() is None
    assert assigned(Device("nvidia.com/rdma", "0"), Device("example.com/fpga", "fpga-1")) is None


def test_two_replicas_of_one_card_are_one_card() -> None:
    assert assigned(Device(GPU, f"{FIRST}::0"), Device(GPU, f"{FIRST}::1")) == ((FIRST,), 0)


def test_each_container_has_its_own() -> None:
    both = [Given("team", "train", name, (Device(GPU, uuid),)) for name, uuid in (
        ("one", FIRST), ("two", SECOND)
    )]  # fmt: skip
    assert assignments_of(both, GPUS) == (
        Assignment("team", "train", "one", (FIRST,)),
        Assignment("team", "train", "two", (SECOND,)),
    )


@for_all(st.lists(st.builds(Device, st.sampled_from((GPU, "nvidia.com/rdma")), st.text())))
def test_no_gpu_is_lost_and_none_invented(devices: list[Device]) -> None:
    found = assigned(*devices)
    gpus = [device for device in devices if device.resource == GPU]
    if not gpus:
        assert found is None or found[1] == 0
        return
    assert found is not None
    named, unnamed = found
    assert set(named) <= {FIRST, SECOND, SLICE}
    assert named or unnamed
    assert unnamed <= len(gpus)
