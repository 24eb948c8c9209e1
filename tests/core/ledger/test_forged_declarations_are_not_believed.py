"""Only what admission wrote counts: a declaration without its seal is charged as if undeclared."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    GIB,
    NAMESPACE,
    Raw,
    applied,
    around,
    container,
    cpu_container,
    env,
    pod,
    policy,
    tenant,
)
from builders import namespace as space
from gpumem_operator import names
from gpumem_operator.admission.review import review_pod
from gpumem_operator.api.pods import env_value, is_handled
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import Rates, charge_pod

SEAL = Seal(b"the key of this cluster, 32 bytes")
RATES = Rates(whole_gpu_bytes=80 * GIB)
FORGED = env(GPUMEM_LIMIT_SOURCE="Annotation", GPUMEM_LIMIT_BYTES=str(GIB))
AROUND = around(policy(limits={"default": "8Gi"}), tenant())


def stored(raw: Raw, *, namespace: str = NAMESPACE) -> Raw:
    """The pod as admission with a key stores it."""
    after = applied(raw, review_pod(raw, AROUND, Values(), seal=SEAL))
    after["metadata"]["namespace"] = namespace
    return after


def charge(raw: Raw) -> int | None:
    return charge_pod(SEAL.verified(raw), Values(), rates=RATES).charge_bytes


def test_what_admission_wrote_is_believed() -> None:
    after = stored(pod(container(gpus=2)))

    assert SEAL.verified(after) is after
    assert is_handled(SEAL.verified(after))
    assert charge(after) == 16 * GIB


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_what_an_author_wrote_is_not(kind: str) -> None:
    raw = pod(container())
    raw["spec"][kind] = [container("train", env=[*FORGED, {"name": "MINE", "value": "1"}])]

    verified = SEAL.verified(raw)

    assert verified["spec"][kind][0]["env"] == [{"name": "MINE", "value": "1"}]
    assert not is_handled(verified)
    assert raw["spec"][kind][0]["env"][0]["name"] == names.LIMIT_SOURCE_ENV  # as it was
    assert charge(pod(container(env=FORGED))) == 80 * GIB


def test_a_container_with_one_of_our_names_is_no_exception() -> None:
    ours = cpu_container(names.SIDECAR_CONTAINER, env=FORGED)

    assert not is_handled(SEAL.verified(pod(container(), init=[ours])))


def test_a_lower_limit_under_a_real_seal_is_not_believed() -> None:
    after = stored(pod(container()))
    for entry in after["spec"]["containers"][0]["env"]:
        if entry["name"] == names.LIMIT_BYTES_ENV:
            entry["value"] = str(GIB)

    assert charge(after) == 80 * GIB


def test_another_source_under_a_real_seal_is_not_believed() -> None:
    after = stored(pod(container()))
    for entry in after["spec"]["containers"][0]["env"]:
        if entry["name"] == names.LIMIT_SOURCE_ENV:
            entry["value"] = "Annotation"

    assert charge(after) == 80 * GIB


def test_nothing_of_a_declaration_that_does_not_hold_is_left() -> None:
    after = stored(pod(container()), namespace="other")

    left = {entry["name"] for entry in SEAL.verified(after)["spec"]["containers"][0]["env"]}

    assert not left & {names.LIMIT_SOURCE_ENV, names.LIMIT_BYTES_ENV, names.SEAL_ENV}


def test_a_seal_is_worth_nothing_in_another_namespace_container_or_cluster() -> None:
    after = stored(pod(container()))
    renamed = copy.deepcopy(after)
    renamed["spec"]["containers"][0]["name"] = "other"

    assert charge(stored(pod(container()), namespace="other")) == 80 * GIB
    assert charge(renamed) == 80 * GIB
    assert not is_handled(Seal(b"the key of some other cluster ...").verified(after))


def test_a_declaration_by_reference_is_not_believed() -> None:
    after = stored(pod(container()))
    for entry in after["spec"]["containers"][0]["env"]:
        if entry["name"] == names.LIMIT_BYTES_ENV:
            del entry["value"]
            entry["valueFrom"] = {"secretKeyRef": {"name": "s", "key": "k"}}

    assert charge(after) == 80 * GIB


def test_an_exported_pod_gets_a_seal_of_its_own() -> None:
    after = stored(pod(container()))
    elsewhere = around(tenant(default_policy={"limits": {"default": "8Gi"}}))
    elsewhere = replace(elsewhere, namespace=space("other"))
    exported = {**after, "metadata": {"name": "job-1", "namespace": "other"}}

    again = applied(exported, review_pod(exported, elsewhere, Values(), seal=SEAL))

    assert charge(again) == 8 * GIB
    seals = [env_value(raw["spec"]["containers"][0], names.SEAL_ENV) for raw in (after, again)]
    assert seals[0] != seals[1]


def test_a_sealed_pod_comes_back_unchanged() -> None:
    after = stored(pod(container()))

    assert review_pod(after, AROUND, Values(), seal=SEAL).operations == ()


def test_nobody_seals_with_a_short_key() -> None:
    with pytest.raises(ValueError, match="31 bytes, and 32 are needed"):
        Seal(b"k" * 31)


@given(
    source=st.sampled_from(["Resource", "Annotation", "Profile", "Policy", "WholeGPU", "", "x"]),
    amount=st.one_of(st.integers(0, 2**63).map(str), st.text(max_size=8)),
    seal=st.text(max_size=70),
)
def test_no_text_of_an_author_lowers_a_charge(source: str, amount: str, seal: str) -> None:
    forged = env(GPUMEM_LIMIT_SOURCE=source, GPUMEM_LIMIT_BYTES=amount, GPUMEM_SEAL=seal)

    assert charge(pod(container(env=forged))) == charge(pod(container())) == 80 * GIB
