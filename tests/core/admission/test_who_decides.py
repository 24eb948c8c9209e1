"""One policy of the namespace, else a tenant's default policy, else the tenant alone."""

from __future__ import annotations

from itertools import permutations

import pytest
import yaml

from builders import (
    OLD,
    YOUNG,
    admitted,
    around,
    broken_policy,
    container,
    cpu_container,
    env,
    frozen,
    gib,
    namespace,
    pod,
    policy,
    refused,
    review,
    tenant,
    variables,
)
from gpumem_operator import names
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.records import (
    PolicyRecord,
    TenantRecord,
    policy_record,
    tenant_record,
    tenants_of,
)
from gpumem_operator.api.values import Values


def test_without_policy_and_tenant_nothing_is_changed() -> None:
    raw = pod(container(env=env(GPUMEM_LIMIT_BYTES="1"), memory="8Gi"))
    verdict = review(raw)
    assert (verdict.operations, verdict.warnings, verdict.refusal) == ((), (), None)


class TestSelection:
    """Highest priority, then oldest, then first by name."""

    def test_in_any_order_of_the_list(self) -> None:
        ranked = [
            policy("urgent", created=YOUNG, priority=10),
            policy("a-old", created=OLD),
            policy("b-old", created=OLD),
            policy("young", created=YOUNG),
            policy("from-a-file", created=""),
            policy("low", created=OLD, priority=-1),
        ]
        for first in range(len(ranked)):
            for some in permutations(ranked[first : first + 4]):
                assert policy_for({}, some) is ranked[first]

    def test_only_those_whose_selector_matches(self) -> None:
        chosen = policy("chosen", selector={"matchLabels": {"a": "b"}})
        other = policy("other", priority=10, selector={"matchLabels": {"a": "c"}})
        assert policy_for({"a": "b"}, [other, chosen]) is chosen
        assert policy_for({}, [other, chosen]) is None

    @pytest.mark.parametrize(
        ("operator", "chosen", "values"),
        [
            ("In", [{"k": "a"}, {"k": "b"}], ["a", "b"]),
            ("NotIn", [{"k": "c"}, {}], ["a", "b"]),
            ("Exists", [{"k": "a"}, {"k": "b"}, {"k": "c"}], []),
            ("DoesNotExist", [{}], []),
        ],
    )
    def test_expressions_mean_what_they_mean_to_the_server(
        self, operator: str, chosen: list[dict[str, str]], values: list[str]
    ) -> None:
        expression = {"key": "k", "operator": operator, "values": values}
        record = policy(selector={"matchExpressions": [expression]})
        pods: list[dict[str, str]] = [{}, {"k": "a"}, {"k": "b"}, {"k": "c"}]
        found = [labels for labels in pods if policy_for(labels, [record])]
        assert sorted(map(str, found)) == sorted(map(str, chosen))

    def test_an_exported_policy_is_as_old_as_its_file_says(self) -> None:
        """YAML reads a time that is not quoted as a time."""
        text = "metadata: {name: exported, namespace: ml, creationTimestamp: 2025-01-01T00:00:00Z}"
        exported = policy_record({**yaml.safe_load(text), "spec": {}})
        assert exported.created == "2025-01-01T00:00:00Z"
        for some in permutations([exported, policy("a"), policy("b", created="")]):
            assert policy_for({}, some) is exported

    def test_the_label_says_which_one_it_was(self) -> None:
        stored = admitted(pod(), policy("a", priority=1), policy("b", priority=2))
        assert stored["metadata"]["labels"][names.POLICY_LABEL] == "b"


class TestTenant:
    def test_alone_it_freezes_and_nothing_else(self) -> None:
        raw = pod(container(memory="8Gi"), cpu_container("web"))
        stored = admitted(raw, tenant())
        assert frozen(stored) == ("Resource", gib(8))
        stored["spec"]["containers"][0].pop("env")
        assert stored["spec"].pop("schedulingGates") == [{"name": names.QUOTA_GATE}]
        assert stored["spec"] == raw["spec"]
        assert stored["metadata"]["labels"] == {names.MANAGED_LABEL: "true"}
        assert stored["metadata"]["annotations"].keys() == {names.SUMMARY_ANNOTATION}

    def test_its_default_policy_decides_where_no_policy_matches(self) -> None:
        record = tenant(default_policy={"limits": {"default": "8Gi"}})
        other = policy(selector={"matchLabels": {"a": "b"}}, limits={"default": "4Gi"})
        stored = admitted(pod(), record, other)
        assert frozen(stored) == ("Policy", gib(8))
        assert names.POLICY_LABEL not in stored["metadata"]["labels"]
        assert names.POLICY_HASH_ANNOTATION in stored["metadata"]["annotations"]

    def test_a_policy_of_the_namespace_comes_before_it(self) -> None:
        record = tenant(default_policy={"limits": {"default": "8Gi"}})
        assert frozen(admitted(pod(), record, policy(limits={"default": "4Gi"}))) == (
            "Policy",
            gib(4),
        )

    def test_of_several_the_first_by_name_that_has_one_gives_it(self) -> None:
        records = [
            tenant("c", default_policy={"limits": {"default": "6Gi"}}),
            tenant("b", default_policy={"limits": {"default": "4Gi"}}),
            tenant("a"),
        ]
        for some in permutations(records):
            assert frozen(admitted(pod(), *some)) == ("Policy", gib(4))

    def test_devices_that_nobody_asked_for_are_refused(self) -> None:
        raw = pod(container(), cpu_container("web", env=env(NVIDIA_VISIBLE_DEVICES="all")))
        text = refused(raw, tenant())
        assert "spec.containers[web].env[NVIDIA_VISIBLE_DEVICES]" in text
        assert "tenant research" in text
        assert "GPUs that it did not ask for" in text
        assert "remove the variable" in text

    @pytest.mark.parametrize("value", ["void", "none"])
    def test_none_at_all_are_allowed(self, value: str) -> None:
        admitted(pod(container(env=env(NVIDIA_VISIBLE_DEVICES=value))), tenant())

    def test_outside_tenants_they_are_handled_and_said_not_to_be_counted(self) -> None:
        raw = pod(cpu_container("train", env=env(NVIDIA_VISIBLE_DEVICES="0")))
        assert frozen(admitted(raw, policy(limits={"default": "8Gi"}))) == ("Policy", gib(8))
        assert "they are not counted" in " ".join(review(raw, policy()).warnings)

    def test_it_is_chosen_by_the_labels_of_the_namespace_alone(self) -> None:
        mine, other = tenant("mine", selects={"team": "a"}), tenant("other", selects={"team": "b"})
        assert tenants_of(namespace(team="a"), (other, mine)) == (mine,)

    def test_the_name_of_the_namespace_is_one_of_its_labels(self) -> None:
        record = tenant(selects={"kubernetes.io/metadata.name": "ml"})
        assert tenants_of(namespace("ml"), (record,)) == (record,)
        assert tenants_of(namespace("web"), (record,)) == ()


class TestUnreadable:
    """What can not be read might be what decides: nothing is let through."""

    BROKEN_TENANT = tenant_record({"metadata": {"name": "t"}, "spec": {"quota": {"limit": "x"}}})

    @pytest.mark.parametrize(
        "records",
        [
            [broken_policy(mode="Foo")],
            [broken_policy(mode="Foo"), policy("good", priority=10)],
            [broken_policy(mode="Foo"), tenant()],
            [BROKEN_TENANT],
            [BROKEN_TENANT, policy()],
        ],
        ids=[
            "a policy",
            "a policy beside a better one",
            "a policy in a tenant",
            "a tenant",
            "a tenant with a policy",
        ],
    )
    def test_a_gpu_pod_is_refused_as_a_fault_and_not_by_rule(
        self, records: list[PolicyRecord | TenantRecord]
    ) -> None:
        verdict = review(pod(), *records)
        assert "can not be read" in (verdict.refusal or "")
        assert verdict.code == 500

    def test_the_refusal_names_object_field_and_value(self) -> None:
        text = refused(pod(), broken_policy("p", limits={"min": "8GB"}))
        assert "policy ml/p" in text
        assert "limits.min" in text
        assert "did you mean 8Gi?" in text

    def test_other_pods_do_not_notice(self) -> None:
        assert review(pod(cpu_container()), broken_policy(mode="Foo")).refusal is None

    def test_fields_of_a_newer_version_are_passed_over(self) -> None:
        assert broken_policy(future={"a": 1}).problem is None


def test_a_refusal_names_the_pod_every_fault_and_who_decides() -> None:
    raw = pod(container("a", memory="1Gi"), container("b", memory="80Gi"))
    text = refused(raw, policy("p", limits={"max": "40Gi"}))
    assert text.startswith("GPU pod ml/job-0 is refused: ")
    assert "spec.containers[a]" in text
    assert "spec.containers[b]" in text
    assert text.endswith("(policy ml/p decides for this pod)")


def test_a_pod_without_a_name_yet_is_called_by_its_prefix() -> None:
    raw = pod(container(memory="1Gi"))
    raw["metadata"] = {"generateName": "job-"}
    assert "GPU pod ml/job-* is refused" in refused(raw, policy())


def test_very_many_faults_are_cut_off_and_counted() -> None:
    raw = pod(*(container(f"c{i}", memory="1Gi") for i in range(30)))
    assert "and 20 more" in refused(raw, policy())


def test_the_same_question_has_the_same_answer() -> None:
    raw = pod(container(env=env(B="1", A="2"), memory="8Gi"))
    surroundings = around(policy(), tenant())
    first = review_pod(raw, surroundings, Values())
    assert all(review_pod(raw, surroundings, Values()) == first for _ in range(3))


def test_only_admission_s_variables_are_read_again() -> None:
    """A second look reads resources and annotations, never what was frozen at the first."""
    stored = admitted(pod(container(memory="8Gi")), policy())
    stored["spec"]["containers"][0]["env"][0]["value"] = "WholeGPU"
    assert variables(admitted(stored, policy()))[names.LIMIT_SOURCE_ENV] == "Resource"
