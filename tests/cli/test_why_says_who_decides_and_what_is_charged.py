"""`kubectl gpumem why pod/x`: that its tenant decides about it, and where its charge is from."""

from typing import Any

from builders import GIB, admitted, around, container, pod, policy, tenant
from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.cli.explain import Known, explain_pod, steps_for
from gpumem_operator.reports.reasons import NO_LIMIT

DEFAULT = {"limits": {"default": "8Gi"}}


def stored(*records: PolicyRecord | TenantRecord, gpus: int = 1) -> Any:
    raw = admitted(pod(container(gpus=gpus)), *records)
    raw["metadata"]["uid"] = "u"
    raw["spec"].pop("schedulingGates", None)
    return raw | {"status": {"phase": "Running"}}


def known(*records: PolicyRecord | TenantRecord, usage: Any = None, **status: Any) -> Known:
    found = around(*records)
    statuses = {one.name: status for one in found.tenants}
    return Known(found.policies, found.namespace, found.tenants, statuses, usage=usage)


def told(*records: PolicyRecord | TenantRecord) -> str:
    return "\n".join(explain_pod(stored(*records), known(*records)))


def unlimited(*records: PolicyRecord | TenantRecord) -> list[str]:
    """Next steps where a container has no limit."""
    one: dict[str, Any] = {"name": "train", "unknown": None, "perGpu": [], "usedBytes": GIB}
    one |= {"enforcedBy": "None", "enforcedReason": NO_LIMIT}
    usage = {"uid": "u", "usedBytes": GIB, "unknown": None, "containers": [one]}
    about = known(*records, usage=usage)
    return steps_for(stored(*records), about)


def test_the_default_policy_of_its_tenant_is_named() -> None:
    text = told(tenant("alpha", default_policy=DEFAULT))
    assert (
        "policy: defaultPolicy of tenant alpha, since no policy of its namespace selects it" in text
    )
    assert "policy: none" not in text
    observed = told(tenant("alpha", default_policy={**DEFAULT, "mode": "Observe"}))
    assert "selects it; in mode Observe, so nothing is limited" in observed


def test_a_tenant_without_one_is_told_so() -> None:
    text = told(tenant("gamma"))
    assert "policy: none, and tenant gamma has no defaultPolicy: it is charged" in text


def test_what_changed_since_the_pod_was_created_is_not_told_as_its_policy() -> None:
    raw = stored(tenant("gamma"))
    later = known(tenant("gamma"), policy("late"))
    assert "  policy: none, as it was when the pod was created; late would win today" in (
        explain_pod(raw, later)
    )
    left = known()
    text = "\n".join(explain_pod(raw, left))
    assert "none; admission handled it for a tenant that its namespace is in no longer" in text


def test_who_may_not_read_tenants_is_not_told_that_there_is_none() -> None:
    blind = Known((), around().namespace, tenants=None)
    text = "\n".join(explain_pod(stored(tenant("alpha", default_policy=DEFAULT)), blind))
    assert "whether a tenant's defaultPolicy decides may not be read" in text


def test_the_limit_is_to_be_given_where_there_is_something_to_give_it() -> None:
    [alone] = unlimited(tenant("gamma"))
    assert alone.endswith("or make a policy with limits.default that selects it")
    [default] = unlimited(tenant("alpha", default_policy={}))
    assert default.endswith("or give defaultPolicy of tenant alpha limits.default")
    [named] = unlimited(policy("training"))
    assert named.endswith("or give policy ml/training limits.default")


def test_gpus_that_count_whole_show_where_the_charge_comes_from() -> None:
    records = (tenant("gamma", whole="80Gi"),)
    lines = explain_pod(stored(*records, gpus=2), known(*records))
    assert "  charged: 160Gi to tenant gamma (train: 2 GPUs x wholeGPU 80Gi)" in lines
    declared = (tenant("gamma"), policy(limits={"default": "8Gi"}))
    assert "  charged: 8Gi to tenant gamma" in explain_pod(stored(*declared), known(*declared))


def test_a_tenant_that_only_warns_and_is_past_its_quota_is_told() -> None:
    records = (tenant("gamma", limit="80Gi", exceeded="Warn"),)
    raw = stored(*records)
    text = "\n".join(explain_pod(raw, known(*records, chargedBytes=96 * GIB)))
    assert (
        "; the tenant is past its quota: 96Gi charged of 80Gi (onExceeded: Warn lets pods in)"
    ) in text
    assert "past its quota" not in "\n".join(explain_pod(raw, known(*records, chargedBytes=GIB)))
