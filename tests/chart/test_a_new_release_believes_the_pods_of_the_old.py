"""The key of the seals outlives the release: running pods were declared with it."""

from __future__ import annotations

import json

import pytest

from chart_rendering import NAMESPACE, RELEASE
from devcluster import Cluster
from devcluster.installation import CHART

pytestmark = pytest.mark.cluster


def test_the_key_is_kept_when_the_release_is_taken_away_and_put_back() -> None:
    with Cluster.start() as cluster:
        install = ("install", RELEASE, CHART, "--namespace", NAMESPACE, "--create-namespace")
        cluster.helm(*install)
        where = ["secret", f"{RELEASE}-seal", "-n", NAMESPACE]
        key = json.dumps({"data": {"seal.key": "aGVsbG8="}})
        cluster.kubectl("patch", *where, "-p", key)

        # There is no node for the Job that opens gates, and no pod that waits.
        cluster.helm("uninstall", RELEASE, "--no-hooks", "--namespace", NAMESPACE)
        cluster.helm(*install)

        found = cluster.kubectl("get", *where, "-o", "jsonpath={.data}").stdout
        assert json.loads(found) == {"seal.key": "aGVsbG8="}
