"""What holds for every pod under every policy."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from builders import Raw, applied, around, containers_of
from core.admission.properties import VALUES, Records, thorough
from core.generated import (
    ALLOCATOR,
    CAPS,
    DRIVER,
    SETTINGS,
    after_other_webhooks,
    as_exported,
    as_stored,
    deciders,
    pods,
    policies,
)
from gpumem_operator import names
from gpumem_operator.admission.decider import decide
from gpumem_operator.admission.review import review_pod
from gpumem_operator.api.pods import gather, is_gpu_pod
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.values import Values

_TOUCHED = (
    "initContainers",
    "volumes",
    "containers",
    "shareProcessNamespace",
    "affinity",
    "schedulingGates",
)
_DOCUMENTED = re.compile(
    r"/metadata/(labels|annotations)(/gpumemory\.dev~1(managed|policy|policy-hash|summary|node-affinity|reserve))?"
    r"|/spec/containers/\d+/(env|volumeMounts)"
    r"|/spec/(initContainers|volumes(/-)?|shareProcessNamespace|affinity|schedulingGates(/-|/\d+)?)"
)


FILLING = Values.model_validate({"scheduling": {"fillResource": "Enabled"}})
charts = st.sampled_from([VALUES, FILLING])


def stored(raw: Raw, records: Records, values: Values = VALUES) -> Raw:
    """The pod after admission; pods that are refused are left out of the property."""
    verdict = review_pod(raw, around(*records), values)
    assume(verdict.refusal is None)
    return applied(raw, verdict)


def operations(raw: Raw, records: Records) -> tuple[Any, ...]:
    verdict = review_pod(raw, around(*records), VALUES)
    assert verdict.refusal is None, verdict.refusal
    return verdict.operations


@thorough
@given(pods(), deciders)
def test_a_pod_that_was_mutated_is_right(raw: Raw, records: Records) -> None:
    assert operations(stored(raw, records), records) == ()


@thorough
@given(pods(), deciders)
def test_it_stays_right_when_the_server_has_filled_in_its_defaults(
    raw: Raw, records: Records
) -> None:
    assert operations(as_stored(stored(raw, records)), records) == ()


@thorough
@given(pods(), deciders)
def test_an_exported_pod_that_is_created_again_is_right(raw: Raw, records: Records) -> None:
    exported = as_exported(stored(raw, records))
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        del exported["metadata"][key]
    del exported["status"]
    if {"name": names.QUOTA_GATE} in exported["spec"].get("schedulingGates", ()):
        # With a gate it never had a node.
        del exported["spec"]["nodeName"]
    assert operations(exported, records) == ()


@thorough
@given(pods(), deciders)
def test_after_other_webhooks_only_our_parts_are_put_right_and_then_it_is_right(
    raw: Raw, records: Records
) -> None:
    first = stored(raw, records)
    assume(first != raw)
    meshed = after_other_webhooks(first)
    second = applied(meshed, review_pod(meshed, around(*records), VALUES))
    assert operations(second, records) == ()
    mesh = {"name": "MESH", "value": "on"}
    for name, one in containers_of(second).items():
        if name in names.OUR_CONTAINERS:
            assert one == containers_of(first)[name]
        else:
            assert mesh in one["env"]
    foreign = [c for c in second["spec"]["initContainers"] if c["name"] not in names.OUR_CONTAINERS]
    meant = [c for c in meshed["spec"]["initContainers"] if c["name"] not in names.OUR_CONTAINERS]
    assert foreign == meant
    assert second["metadata"] == meshed["metadata"]


@thorough
@given(pods())
def test_without_policy_and_tenant_no_pod_is_changed(raw: Raw) -> None:
    verdict = review_pod(raw, around(), VALUES)
    assert (verdict.operations, verdict.refusal, verdict.warnings) == ((), None, ())


@thorough
@given(pods(usual=True), policies("a"), policies("b"), charts, charts)
def test_created_again_under_another_policy_it_is_as_if_it_had_been_created_there(
    raw: Raw, first: PolicyRecord, second: PolicyRecord, before: Values, now: Values
) -> None:
    """Apart from values of the author that the first policy replaced or merged."""
    again = stored(stored(raw, [first], before), [second], now)
    fresh = stored(raw, [second], now)
    assert _comparable(again, raw) == _comparable(fresh, raw)


def _comparable(pod: Raw, author: Raw) -> Any:
    pod = copy.deepcopy(pod)
    for name, one in containers_of(pod).items():
        theirs = {e["name"] for e in containers_of(author).get(name, {}).get("env") or ()}
        lost = {*CAPS, *ALLOCATOR, *SETTINGS, *DRIVER} & theirs
        # The order among variables that nobody refers to does not matter.
        entries = {
            e["name"]: e.get("valueFrom") or e.get("value", "")
            for e in one.pop("env", [])
            if e["name"] not in lost
        }
        if names.INJECTED_ENV in entries and set(ALLOCATOR) & theirs:
            del entries[names.INJECTED_ENV]
        one["env"] = entries
        one["volumeMounts"] = {m["mountPath"]: m for m in one.get("volumeMounts") or ()}
    pod["spec"]["volumes"] = {v["name"]: v for v in pod["spec"].get("volumes") or ()}
    if not pod["spec"].get("initContainers"):
        pod["spec"].pop("initContainers", None)
    return pod


@thorough
@given(pods(), deciders)
def test_operations_apply_and_touch_nothing_but_what_is_documented(
    raw: Raw, records: Records
) -> None:
    before = json.dumps(raw)
    verdict = review_pod(raw, around(*records), VALUES)
    assert json.dumps(raw) == before
    after = applied(raw, verdict)
    for operation in verdict.operations:
        assert _DOCUMENTED.fullmatch(operation["path"]), operation["path"]
    for part in (raw, after):
        for key in _TOUCHED:
            part["spec"].pop(key, None)
        for key in ("labels", "annotations"):
            part["metadata"].pop(key, None)
    assert after == raw


@thorough
@given(pods(), deciders)
def test_every_other_label_and_annotation_stays(raw: Raw, records: Records) -> None:
    after = stored(raw, records)
    for key in ("labels", "annotations"):
        for name, value in (raw["metadata"].get(key) or {}).items():
            if name not in (names.POLICY_LABEL, names.POLICY_HASH_ANNOTATION):
                assert after["metadata"][key][name] == value


@thorough
@given(pods(), deciders)
def test_the_author_s_containers_keep_what_is_not_ours(raw: Raw, records: Records) -> None:
    after = containers_of(stored(raw, records))
    for name, one in containers_of(raw).items():
        if name in names.OUR_CONTAINERS:
            continue
        fields = {k: v for k, v in one.items() if k not in ("env", "volumeMounts")}
        kept = {k: v for k, v in after[name].items() if k not in ("env", "volumeMounts")}
        assert kept == fields
        if not is_gpu_pod({"spec": {"containers": [one]}}, names.MEMORY_RESOURCE):
            listed = names.INJECTED_ENV in str(one) or names.SHIM_PATH in str(one.get("env"))
            assert _without_pretence(after[name], listed=listed) == _without_pretence(
                one, listed=listed
            )


def _without_pretence(one: Raw, *, listed: bool) -> tuple[list[Raw], list[Raw]]:
    """Variables and mounts, without those that only we may have, or that were called ours."""
    taken = {names.PYTHON_PATH_ENV, names.VISIBLE_DEVICES_ENV, *ALLOCATOR, *CAPS}
    hidden = {"name": names.VISIBLE_DEVICES_ENV, "value": "void"} if one.get("envFrom") else None
    entries = [entry for entry in one.get("env") or [] if entry != hidden]
    return (
        [
            entry
            for entry in entries
            if not entry["name"].startswith(names.ENV_PREFIX)
            and not (listed and entry["name"] in taken)
        ],
        [m for m in one.get("volumeMounts") or () if m["name"] not in names.OUR_VOLUMES],
    )


@thorough
@given(pods(), deciders)
def test_no_cap_is_above_ours(raw: Raw, records: Records) -> None:
    after = stored(raw, records)
    facts = gather(after, names.MEMORY_RESOURCE)
    decider = decide(facts.labels, around(*records))
    assume(decider is not None and decider.active)
    assert decider is not None
    assert decider.spec is not None
    reserve = decider.spec.limits.context_reserve_bytes
    processes = int(facts.annotations.get(names.PROCESSES_PER_GPU_ANNOTATION, "1"))
    for container in facts.gpu_containers:
        entries = container.raw["env"]
        limits = {int(e["value"]) for e in entries if e["name"] == names.LIMIT_BYTES_ENV}
        if not limits:
            continue
        (limit,) = limits
        caps = [e for e in entries if e["name"] == names.CUPY_LIMIT_ENV]
        assert caps
        assert all(0 < int(e["value"]) <= limit // processes - reserve for e in caps)
        pinned = [e for e in entries if e["name"] == names.MPS_LIMIT_ENV]
        assert pinned
        for entry in pinned:
            amounts = [item.split("=")[1] for item in entry["value"].split(",")]
            assert len(amounts) == container.gpu_count
            assert all(0 < int(a[:-1]) * 2**20 <= limit // processes for a in amounts)
            assert all(a.endswith("M") for a in amounts)


@thorough
@given(pods(), deciders)
def test_whatever_the_author_wrote_the_frozen_values_are_ours(raw: Raw, records: Records) -> None:
    after = stored(raw, records)
    assume(after != raw)
    for name, one in containers_of(after).items():
        entries = [e for e in one.get("env") or () if e["name"].startswith(names.ENV_PREFIX)]
        assert not any(e.get("value") in ("1", "x", "$(A)", "A") for e in entries if _frozen(e))
        if not is_gpu_pod({"spec": {"containers": [one]}}, names.MEMORY_RESOURCE):
            hidden = [{"name": names.INJECTED_ENV, "value": names.VISIBLE_DEVICES_ENV}]
            assert entries in ([], hidden) or name in names.OUR_CONTAINERS


def _frozen(entry: Raw) -> bool:
    return entry["name"] in (names.LIMIT_BYTES_ENV, names.LIMIT_SOURCE_ENV, names.INJECTED_ENV)


@thorough
@given(pods(), deciders)
def test_warnings_are_few_and_short_and_refusals_have_a_bound(raw: Raw, records: Records) -> None:
    verdict = review_pod(raw, around(*records), VALUES)
    assert all(len(text) <= 256 for text in verdict.warnings)
    assert len(verdict.warnings) <= 17
    assert len(verdict.refusal or "") < 8000
