"""Policies and tenants with a value that was allowed once: nothing may break for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.objects import Object, policy, tenant, with_field
from devcluster import Cluster
from gpumem_operator.api.crd import POLICY, custom_resource_definition
from gpumem_operator.api.policy import MOST_INTERVAL_SECONDS
from gpumem_operator.api.records import policy_record, tenant_record
from gpumem_operator.api.rules import VALIDATIONS
from patience import WAIT

LONG_AGO = with_field(policy(), "spec.monitoring.intervalSeconds", 3600)
GROUP = "stored-long-ago.example"
RESOURCE = f"gpumemorypolicies.{GROUP}"


def test_a_stored_policy_is_read_with_the_bound_and_says_so() -> None:
    record = policy_record(LONG_AGO)
    assert record.spec is not None
    assert record.spec.monitoring.interval_seconds == MOST_INTERVAL_SECONDS
    [sentence] = record.read_as
    assert sentence.startswith("spec.monitoring.intervalSeconds 3600 is more than 60, which counts")


def test_a_stored_tenants_default_policy_too() -> None:
    spec: Any = {"monitoring": {"intervalSeconds": 61}}
    record = tenant_record(with_field(tenant(), "spec.defaultPolicy", spec))
    assert record.spec is not None
    assert record.spec.default_policy is not None
    assert record.spec.default_policy.monitoring.interval_seconds == MOST_INTERVAL_SECONDS
    [sentence] = record.read_as
    assert sentence.startswith("spec.defaultPolicy.monitoring.intervalSeconds 61 is more than 60")


def test_a_file_with_it_is_refused() -> None:
    assert "so write 60 or less" in (policy_record(LONG_AGO, strict=True).problem or "")


def test_a_value_at_the_bound_is_read_as_it_is() -> None:
    at_it = with_field(policy(), "spec.monitoring.intervalSeconds", MOST_INTERVAL_SECONDS)
    assert policy_record(at_it, strict=True).problem is None
    assert policy_record(at_it).read_as == ()


@pytest.mark.parametrize("odd", [None, "often", True, 6e3, [61], {}])
def test_what_is_no_number_is_still_an_error(odd: object) -> None:
    record = policy_record(with_field(policy(), "spec.monitoring", {"intervalSeconds": odd}))
    assert record.read_as == ()
    assert (record.problem is None) == (odd is None)


@pytest.mark.parametrize("spec", [None, 7, "x", [], {"monitoring": 7}, {"monitoring": None}])
def test_a_spec_that_is_none_raises_nothing(spec: object) -> None:
    assert policy_record(policy() | {"spec": spec}).read_as == ()
    assert tenant_record(tenant() | {"spec": spec}).problem is not None


def definition(*, bounded: bool) -> dict[str, Any]:
    """Ours in a group of its own, as it is or as it was."""
    found = custom_resource_definition(POLICY)
    found["metadata"]["name"] = RESOURCE
    found["spec"]["group"] = GROUP
    [version] = found["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    interval = spec["monitoring"]["properties"]["intervalSeconds"]
    if not bounded:
        assert interval.pop(VALIDATIONS)
    return found


def send(cluster: Cluster, verb: str, document: Object, *flags: str) -> bool:
    done = cluster.kubectl(verb, "-f", "-", *flags, input=json.dumps(document), check=False)
    return done.returncode == 0


@pytest.fixture
def stored(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that has it, and from now on the new definition."""
    wait = ("wait", "--for=condition=Established", WAIT, "crd", RESOURCE)
    assert send(cluster, "create", definition(bounded=False))
    cluster.kubectl(*wait)
    old = LONG_AGO | {"apiVersion": f"{GROUP}/v1alpha1"}
    while not send(cluster, "create", old):
        pass  # discovery follows a definition in a moment
    assert send(cluster, "apply", definition(bounded=True), "--server-side", "--force-conflicts")
    new = with_field(old, "metadata.name", "new")
    while send(cluster, "create", new, "--dry-run=server"):
        pass
    yield cluster
    cluster.kubectl("delete", "crd", RESOURCE)


@pytest.mark.cluster
def test_the_server_keeps_it_and_lets_everything_else_of_it_be_changed(stored: Cluster) -> None:
    name = LONG_AGO["metadata"]["name"]
    patches = [
        ({"spec": {"priority": 7}}, ()),
        ({"metadata": {"labels": {"a": "b"}}}, ()),
        ({"status": {"observedGeneration": 2}}, ("--subresource=status",)),
    ]
    for patch, flags in patches:
        stored.kubectl("patch", RESOURCE, name, "--type=merge", "-p", json.dumps(patch), *flags)
    longer = json.dumps({"spec": {"monitoring": {"intervalSeconds": 3599}}})
    refused = stored.kubectl("patch", RESOURCE, name, "--type=merge", "-p", longer, check=False)
    assert "3599 s between two measurements are too many" in refused.stderr
