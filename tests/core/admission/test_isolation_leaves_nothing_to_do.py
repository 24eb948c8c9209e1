"""The isolation of a pod is finished after one pass, and touches nothing but one variable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import Raw, applied, container, pod
from gpumem_operator.admission.isolation import isolate_ephemeral_containers, isolate_pod
from gpumem_operator.admission.verdict import Verdict

DEVICES = "NVIDIA_VISIBLE_DEVICES"
ENTRIES = st.lists(
    st.one_of(
        st.sampled_from(["void", "none", "all", "0", "", " void"]).map(
            lambda value: {"name": DEVICES, "value": value}
        ),
        st.just({"name": DEVICES, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}),
        st.just({"name": "OTHER", "value": f"$({DEVICES})"}),
    ),
    max_size=4,
)
CONTAINERS = st.builds(
    lambda env, gpus: container("c", env=env, gpus=gpus),
    ENTRIES,
    st.sampled_from([None, 0, 1, "2"]),
)


@given(st.lists(CONTAINERS, min_size=1, max_size=3), st.lists(CONTAINERS, max_size=2))
def test_one_pass_is_enough(containers: list[Raw], init: list[Raw]) -> None:
    raw = pod(*containers, init=init)

    after = applied(raw, Verdict(tuple(isolate_pod(raw))))

    assert list(isolate_pod(after)) == []
    for kind in ("containers", "initContainers"):
        for old, new in zip(raw["spec"].get(kind, ()), after["spec"].get(kind, ()), strict=True):
            given_ = [entry for entry in old["env"] if entry["name"] != DEVICES]
            assert [entry for entry in new["env"] if entry["name"] != DEVICES] == given_
            asks = old.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", "0") != "0"
            values = [entry.get("value") for entry in new["env"] if entry["name"] == DEVICES]
            assert new == old if asks else values in (["void"], ["none"])


def test_ephemeral_containers_that_are_there_are_never_touched() -> None:
    old = pod(ephemeralContainers=[container("early", gpus=None)])
    new = pod(ephemeralContainers=[container("early", gpus=None), container("late", gpus=None)])

    [operation] = isolate_ephemeral_containers(new, old)

    assert operation["path"] == "/spec/ephemeralContainers/1/env"
