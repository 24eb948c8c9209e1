"""What the property tests of admission share."""

from __future__ import annotations

from hypothesis import settings

from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.api.values import Values

Records = list[PolicyRecord | TenantRecord]
VALUES = Values()
thorough = settings(max_examples=120, deadline=None)
