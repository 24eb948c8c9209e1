"""The API server checks the types of policies in the background and says so in their statuses."""

from __future__ import annotations

import json
import time

import pytest

from devcluster.installation import Installation
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster


def test_no_policy_has_a_warning(bare: Installation) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all(found := checked(bare).values()):
        assert time.monotonic() < deadline, "not every policy was checked"

    assert len(found) >= 6
    said = {name: status["typeChecking"] for name, status in checked(bare).items()}
    assert {name: warnings for name, warnings in said.items() if warnings} == {}


def checked(installation: Installation) -> dict[str, dict[str, object]]:
    """What the API server says of each policy of the chart; empty where it has not looked yet."""
    kubectl = installation.cluster.kubectl
    found = kubectl("get", "validatingadmissionpolicies", "-o", "json").stdout
    policies = json.loads(found)["items"]
    return {
        policy["metadata"]["name"]: policy.get("status", {})
        if policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"]
        else {}
        for policy in policies
    }
