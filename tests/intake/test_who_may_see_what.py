"""Who may read what with `top`, `tenants` and `why`: real accounts with the chart's roles.

| bound                     | pods                 | tenants         | what is measured     |
|---------------------------|----------------------|-----------------|----------------------|
| view in one namespace     | of that namespace    | no              | sums of its policies |
| view in the whole cluster | all                  | as stored       | stored sums          |
| Role reader alone         | all, from the leader | from the leader | all                  |
| nothing                   | no                   | no              | no                   |
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from intake.people import Person
from intake.senders import Cast
from report_builders import GIB, process, raw_report

pytestmark = pytest.mark.cluster
Arrive = Callable[[], Person]


@pytest.fixture
def train(cast: Cast) -> Cast:
    """A pod that holds 1Gi, in the statuses too."""
    uid = cast.pod("train")
    cast.send(cast.token("train"), raw_report(process(GIB, pod=uid)))
    cast.until(lambda: cast.memory().get("usedBytes") == GIB)
    return cast


def test_a_member_of_a_team_sees_its_namespace_and_no_tenant(train: Cast, person: Arrive) -> None:
    member = person().views(train.namespace)
    shown = member.asks("top", "-n", train.namespace)
    assert "unknown: NotPermitted" in shown.stdout
    assert ": bind Role gpu-memory-operator-reader in namespace" in shown.stderr
    assert_short(shown.stderr)
    why = member.asks("why", "pod/train", "-n", train.namespace)
    assert "  container main: limit 8Gi per GPU on 1 GPU (Policy)" in why.stdout
    assert "  charged: not known, tenants may not be read" in why.stdout
    assert "you may not read tenants, so" in why.stderr
    assert_short(why.stderr)
    for question in (("top", "-A"), ("top", "-n", "default"), ("why", "pod/x", "-n", "default")):
        said = member.asks(*question, status=2).stderr
        assert "(403): have ClusterRole view bound" in said
        assert_short(said)
    refused = member.asks("tenants", status=2)
    assert refused.stdout == ""
    assert "by a ClusterRoleBinding, since tenants are cluster-scoped" in refused.stderr
    assert_short(refused.stderr)


def assert_short(said: str) -> None:
    """Fact, cause and next step, and not the API server's own sentence about URL and user."""
    for line in said.splitlines():
        assert len(line) < 350
        assert "/api" not in line
        assert "forbidden" not in line


def test_whoever_views_the_cluster_sees_what_is_stored(train: Cast, viewer: Person) -> None:
    assert "unknown: NotPermitted" in viewer.asks("top", "-A").stdout
    why = viewer.asks("why", "pod/train", "-n", train.namespace).stdout
    assert f"  charged: 8Gi to tenant {train.namespace}" in why
    assert "  used: not known, the leader was not asked" in why
    assert train.namespace in viewer.asks("tenants").stdout


def test_a_reader_sees_all_that_the_leader_knows_and_no_object(train: Cast, person: Arrive) -> None:
    reader = person().reads()
    found = json.loads(reader.asks("top", "-A", "-o", "json").stdout)
    used = {(pod["namespace"], pod["name"]): pod["usedBytes"] for pod in found["pods"]}
    assert used[train.namespace, "train"] == GIB
    shown = reader.asks("tenants", train.namespace)
    assert "  charged: 8Gi; left: 92Gi" in shown.stdout
    assert shown.stderr == ""
    assert "403" in reader.asks("why", "pod/train", "-n", train.namespace, status=2).stderr


def test_whoever_has_no_role_sees_nothing(train: Cast, person: Arrive) -> None:
    stranger = person()
    for question in (
        ("top", "-n", train.namespace),
        ("tenants",),
        ("why", "pod/train", "-n", train.namespace),
    ):
        refused = stranger.asks(*question, status=2)
        assert refused.stdout == ""
        assert refused.stderr.startswith("error: ")
    no_pods = stranger.asks("top", "-n", train.namespace, status=2)
    assert "bind Role gpu-memory-operator-reader" in no_pods.stderr
