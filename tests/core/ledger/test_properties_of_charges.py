"""A charge depends on the stored pod alone, and admission counts the same."""

from __future__ import annotations

import copy
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import Raw, applied, around, values
from core.generated import as_stored, pods, policies, tenants
from gpumem_operator.admission.decider import decide
from gpumem_operator.admission.declaration import declare
from gpumem_operator.admission.review import review_pod
from gpumem_operator.api.pods import gather
from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import Rates, charge_facts, charge_pod, rates_of

thorough = settings(max_examples=120, deadline=None)
CHARTS = st.sampled_from(
    [
        values(),
        values(exclusiveResources=["nvidia.com/gpu"]),
        values(scheduling={"fillResource": "Enabled"}),
    ]
)


def rates(tenant: TenantRecord, chart: Values) -> Rates:
    assert tenant.spec is not None
    return rates_of(tenant.spec.quota, chart)


@thorough
@given(pods(), policies(), tenants(), CHARTS)
def test_admission_counts_what_the_ledger_counts_later(
    raw: Raw, policy: PolicyRecord, tenant: TenantRecord, chart: Values
) -> None:
    surroundings = around(policy, tenant)
    verdict = review_pod(raw, surroundings, chart)
    assume(verdict.refusal is None)
    facts = gather(raw, "nvidia.com/memory")
    decider = decide(facts.labels, surroundings)
    assert decider is not None
    assert decider.spec is not None
    limits = decider.spec.limits
    if not decider.active:
        limits = limits.model_copy(update={"default_bytes": None})
    declared = declare(
        facts,
        "nvidia.com/memory",
        limits=limits,
        exclusive_resources=frozenset(chart.exclusive_resources),
    )
    rows = {
        row.container.name: (row.source, row.limit_bytes)
        for row in declared.rows
        if row.container.gpu_count
    }
    before = charge_facts(facts, rates(tenant, chart), limits=rows)
    after = charge_pod(applied(raw, verdict), chart, rates=rates(tenant, chart))
    assert after.charge_bytes == before.charge_bytes
    assert [row.limit_bytes for row in after.containers] == [
        row.limit_bytes for row in before.containers
    ]


@thorough
@given(pods(), policies(), tenants(), CHARTS)
def test_admission_twice_and_the_server_s_defaults_change_no_charge(
    raw: Raw, policy: PolicyRecord, tenant: TenantRecord, chart: Values
) -> None:
    surroundings = around(policy, tenant)
    first = review_pod(raw, surroundings, chart)
    assume(first.refusal is None)
    once = applied(raw, first)
    again = as_stored(once)
    assert review_pod(again, surroundings, chart).operations == ()
    assert charge_pod(again, chart, rates=rates(tenant, chart)) == charge_pod(
        once,
        chart,
        rates=rates(tenant, chart),
    )


@thorough
@given(pods(), st.randoms(use_true_random=False))
def test_nothing_but_resources_env_and_the_order_of_steps_changes_a_charge(
    raw: Raw, random: Random
) -> None:
    other = copy.deepcopy(raw)
    other["metadata"] = {"name": "other"}
    random.shuffle(other["spec"]["containers"])
    other["spec"].pop("volumes", None)
    other["status"] = {"phase": "Running"}
    rate = Rates(80 * 2**30)
    first = charge_pod(raw, values(), rates=rate).charge_bytes
    assert charge_pod(other, values(), rates=rate).charge_bytes == first
