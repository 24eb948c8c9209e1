"""Policies and tenants come from lists that promise no order."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from builders import Raw, around
from core.admission.properties import VALUES, thorough
from core.generated import pods, policies, tenants
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.records import PolicyRecord, Surroundings, TenantRecord


@given(st.lists(policies(), max_size=4), st.sampled_from([{}, {"app": "x"}]))
def test_the_order_in_which_policies_are_listed_does_not_matter(
    listed: list[PolicyRecord], labels: dict[str, str]
) -> None:
    named = [
        PolicyRecord(p.namespace, f"p{i}", p.uid, p.created, p.generation, p.spec, None)
        for i, p in enumerate(listed)
    ]
    assert len({id(policy_for(labels, some)) for some in permutations(named)}) == 1


@thorough
@given(pods(), st.lists(tenants(), min_size=1, max_size=3))
def test_the_order_in_which_records_are_listed_does_not_matter(
    raw: Raw, listed: list[TenantRecord]
) -> None:
    named = [TenantRecord(f"t{i}", t.uid, t.generation, t.spec, None) for i, t in enumerate(listed)]
    found = {repr(review_pod(raw, around(*some), VALUES)) for some in permutations(named)}
    assert len(found) == 1


def test_surroundings_are_as_small_as_they_are_said_to_be() -> None:
    assert Surroundings.__dataclass_fields__.keys() == {"namespace", "policies", "tenants"}
