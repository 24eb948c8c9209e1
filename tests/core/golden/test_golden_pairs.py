"""Whole pods, as a reader of a policy would want to see them. README.md says how to renew them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import applied, around, namespace
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.records import (
    PolicyRecord,
    Surroundings,
    TenantRecord,
    namespace_record,
    policy_record,
    tenant_record,
)
from gpumem_operator.api.values import Values

HERE = Path(__file__).parent
INPUTS = sorted(HERE.glob("*.input.yaml"))
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


class Case:
    """One input: the pod, its surroundings and the chart's values."""

    def __init__(self, file: Path) -> None:
        records: list[PolicyRecord | TenantRecord] = []
        space = namespace("ml")
        self.values = Values()
        for raw in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            match raw["kind"]:
                case "Pod":
                    self.pod: dict[str, Any] = raw
                case "Namespace":
                    space = namespace_record(raw)
                case "GPUMemoryPolicy":
                    records.append(policy_record(raw, strict=True))
                case "GPUMemoryTenant":
                    records.append(tenant_record(raw, strict=True))
                case "Values":
                    self.values = Values.model_validate(raw["values"])
                case other:
                    raise AssertionError(f"{file.name} has a {other}")
        assert all(record.problem is None for record in records), records
        self.surroundings: Surroundings = around(*records, namespace=space)

    def review(self, pod: dict[str, Any]) -> Verdict:
        return review_pod(pod, self.surroundings, self.values)


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: file.name.split(".")[0])
def test_the_pod_comes_out_as_it_stands_in_the_file(file: Path) -> None:
    case = Case(file)
    verdict = case.review(case.pod)
    expected = _expected(file, verdict)
    text = _text(case.pod, verdict)
    if UPDATE:
        expected.write_text(text, encoding="utf-8")
        pytest.skip(f"{expected.name} was written: look at the difference before you keep it")
    assert expected.read_text(encoding="utf-8") == text
    if verdict.refusal is None:
        assert case.review(applied(case.pod, verdict)).operations == ()


def test_every_file_belongs_to_an_input() -> None:
    names = {file.name.split(".")[0] for file in INPUTS}
    outputs = [*HERE.glob("*.output.yaml"), *HERE.glob("*.refusal.txt")]
    assert sorted(file.name.split(".")[0] for file in outputs) == sorted(names)


def _expected(file: Path, verdict: Verdict) -> Path:
    suffix = ".refusal.txt" if verdict.refusal is not None else ".output.yaml"
    return file.with_name(file.name.replace(".input.yaml", suffix))


def _text(pod: dict[str, Any], verdict: Verdict) -> str:
    if verdict.refusal is not None:
        return f"{verdict.refusal}\n"
    documents = [applied(pod, verdict), {"warnings": list(verdict.warnings)}]
    return yaml.safe_dump_all(documents, sort_keys=False, width=100, allow_unicode=True)
