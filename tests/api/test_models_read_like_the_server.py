"""The small rules by which the API server reads every object, in the models as well."""

import pytest
from pydantic import ValidationError

from api.objects import policy, with_field
from gpumem_operator.api.policy import PolicySpec
from gpumem_operator.api.records import policy_record


def test_a_null_is_an_absent_field() -> None:
    nulls = {"limits": {"default": None, "min": None}, "monitoring": {"mode": None}, "mode": None}
    assert PolicySpec.model_validate(nulls) == PolicySpec()


def test_a_null_for_a_required_field_is_a_missing_field() -> None:
    bad = with_field(policy(), "spec.datasetCache", {"mountPath": "/data", "sizeLimit": None})
    problem = policy_record(bad, strict=True).problem
    assert problem == "spec.datasetCache.sizeLimit: is required"


@pytest.mark.parametrize("number", ["10", 10.0, True])
def test_only_an_integer_is_an_integer(number: object) -> None:
    with pytest.raises(ValidationError):
        PolicySpec.model_validate({"priority": number})


def test_a_stored_field_of_a_newer_version_is_left_aside() -> None:
    newer = with_field(policy(), "spec.placement", {"mode": "Packed"})
    assert policy_record(newer).spec == PolicySpec()
    assert policy_record(newer, strict=True).problem == "spec.placement: unknown field"


def test_every_fault_is_told_at_once_with_its_path() -> None:
    bad = with_field(policy(), "spec.limits.min", "8GB")
    bad = with_field(bad, "spec.priority", "high")
    problem = str(policy_record(bad, strict=True).problem)
    assert "spec.limits.min: '8GB' is not a quantity" in problem
    assert "spec.priority: " in problem
