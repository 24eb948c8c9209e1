"""What the API server makes of both definitions, and of the objects that people write."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.objects import policy, tenant
from devcluster import Cluster
from gpumem_operator import names
from gpumem_operator.api.crd import KINDS, Kind
from gpumem_operator.api.policy import PolicySpec
from gpumem_operator.api.records import policy_record, tenant_record
from gpumem_operator.api.tenant import TenantSpec

pytestmark = pytest.mark.cluster


def stored(api_server: Cluster, document: dict[str, Any]) -> dict[str, Any]:
    """The object as the server would store it: with its defaults."""
    answer = api_server.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(document)
    )
    assert answer.stderr == ""
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_is_served_and_structural(api_server: Cluster, kind: Kind) -> None:
    found = api_server.kubectl("get", "crd", f"{kind.plural}.{names.GROUP}", "-o", "json").stdout
    conditions = {
        condition["type"]: condition["status"]
        for condition in json.loads(found)["status"]["conditions"]
    }
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_every_example_is_taken_without_a_warning(api_server: Cluster, example: Path) -> None:
    answer = api_server.kubectl("apply", "--dry-run=server", "-f", example)
    assert answer.stderr == ""


def test_the_server_stores_what_the_models_read_from_the_file(
    api_server: Cluster, example: Path
) -> None:
    written = yaml.safe_load(example.read_text())
    record = policy_record if written["kind"] == names.POLICY_KIND else tenant_record
    from_file, from_server = record(written, strict=True), record(stored(api_server, written))
    assert from_file.problem is None
    assert from_file.spec == from_server.spec


def test_defaults_are_the_same_in_the_server_and_in_the_models(api_server: Cluster) -> None:
    policy_spec = stored(api_server, policy("defaults"))["spec"]
    assert policy_spec == PolicySpec().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert policy_spec["limits"] == {"min": "2Gi", "contextReserve": "1Gi"}
    written = tenant("defaults")
    written["spec"]["defaultPolicy"] = {}
    read = TenantSpec.model_validate(written["spec"])
    assert stored(api_server, written)["spec"] == read.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )


def test_a_null_is_an_absent_field_for_both(api_server: Cluster) -> None:
    document = policy("nulls")
    document["spec"] = {"limits": {"default": None, "min": None}, "monitoring": {"mode": None}}
    assert stored(api_server, document)["spec"] == PolicySpec.model_validate(
        document["spec"]
    ).model_dump(mode="json", by_alias=True, exclude_none=True)


def test_a_quota_of_nothing_is_a_quota(api_server: Cluster) -> None:
    document = tenant("nothing")
    document["spec"]["quota"]["limit"] = 0
    assert stored(api_server, document)["spec"]["quota"]["limit"] == 0


def test_a_policy_name_of_63_characters_is_taken(api_server: Cluster) -> None:
    stored(api_server, policy("n" * 63))


def test_every_unknown_field_is_named_at_once(api_server: Cluster) -> None:
    document = policy("typos")
    document["spec"] = {"limit": {}, "selector": {"matchlabels": {}}}
    answer = api_server.kubectl("apply", "-f", "-", input=json.dumps(document), check=False)
    assert 'unknown field "spec.limit"' in answer.stderr
    assert 'unknown field "spec.selector.matchlabels"' in answer.stderr


POLICY_STATUS = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Applied",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "pods": {"managed": 3, "outdated": 1, "unmanaged": 2},
    "memory": {"usedBytes": 4096, "readable": {"used": "4Ki"}},
}
TENANT_STATUS = {
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "Fine",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("Ready", "WithinQuota")
    ],
    "chargedBytes": 1024,
    "readable": {"charged": "1Ki"},
}


def write_status(api_server: Cluster, resource: str, status: dict[str, Any]) -> dict[str, Any]:
    patch = json.dumps({"status": status, "spec": {"ignored": "here"}})
    changed = api_server.kubectl(
        "patch", resource, "shown", "--subresource=status", "--type=merge", "-p", patch,
        "-o", "json",
    ).stdout  # fmt: skip
    result: dict[str, Any] = json.loads(changed)
    return result


def columns_of(api_server: Cluster, *arguments: str) -> dict[str, str]:
    """The single row that `kubectl get` prints, by the head of its columns."""
    head, row = api_server.kubectl("get", *arguments).stdout.splitlines()
    starts = [position for position in range(len(head)) if head[position] != " "
              and (position == 0 or head[position - 1] == " ")]  # fmt: skip
    ends = [*starts[1:], max(len(head), len(row))]
    return {
        head[start:end].strip(): row[start:end].strip()
        for start, end in zip(starts, ends, strict=True)
    }


def test_the_status_of_a_policy_is_written_apart_and_shown(api_server: Cluster) -> None:
    document = policy("shown")
    document["spec"] = {"limits": {"default": "8Gi", "max": 17179869184}, "priority": 10}
    document["status"] = {"observedGeneration": 99}
    api_server.kubectl("create", "-f", "-", input=json.dumps(document))
    try:
        fresh = json.loads(api_server.kubectl("get", "gmp", "shown", "-o", "json").stdout)
        assert "status" not in fresh, "a status can be created together with its spec"
        changed = write_status(api_server, "gmp", POLICY_STATUS)
        assert changed["status"] == POLICY_STATUS
        assert changed["metadata"]["generation"] == 1
        shown = columns_of(api_server, "gmp", "shown", "-o", "wide")
        shown.pop("AGE")
        assert shown == {
            "NAME": "shown", "MODE": "Active", "PRIORITY": "10", "DEFAULT": "8Gi",
            "MAX": "17179869184", "MANAGED": "3", "OUTDATED": "1", "UNMANAGED": "2",
            "SHADOWED": "", "USED": "4Ki", "READY": "True",
        }  # fmt: skip
        assert "SHADOWED" not in columns_of(api_server, "gmp", "shown")
    finally:
        api_server.kubectl("delete", "gmp", "shown")


def test_the_status_of_a_tenant_is_written_apart_and_shown(api_server: Cluster) -> None:
    api_server.kubectl("create", "-f", "-", input=json.dumps(tenant("shown")))
    try:
        assert write_status(api_server, "gmt", TENANT_STATUS)["status"] == TENANT_STATUS
        shown = columns_of(api_server, "gmt", "shown")
        shown.pop("AGE")
        assert shown == {
            "NAME": "shown", "LIMIT": "160Gi", "CHARGED": "1Ki", "QUEUED": "",
            "ONEXCEEDED": "Queue", "READY": "True", "WITHINQUOTA": "True",
        }  # fmt: skip
        both = api_server.kubectl("get", names.CATEGORY, "-o", "name").stdout
        assert f"{names.TENANT_KIND.lower()}.{names.GROUP}/shown" in both
    finally:
        api_server.kubectl("delete", "gmt", "shown")


def test_a_status_without_numbers_says_nothing_about_them(api_server: Cluster) -> None:
    document = policy("shown")
    api_server.kubectl("create", "-f", "-", input=json.dumps(document))
    try:
        status = {"pods": {"managed": 1}, "memory": {}, "enforcers": {}}
        assert write_status(api_server, "gmp", status)["status"] == status
    finally:
        api_server.kubectl("delete", "gmp", "shown")


def test_kubectl_explains_a_field_in_the_words_of_the_model(api_server: Cluster) -> None:
    text = " ".join(api_server.kubectl("explain", "gmp.spec.limits.default").stdout.split())
    assert "Limit per GPU of a container that declares nothing." in text
