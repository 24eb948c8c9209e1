"""What a pod's author can write to make the operator slow, wrong or silent."""

from __future__ import annotations

from builders import admitted, container, frozen, pod, policy, refused, review
from gpumem_operator import names
from gpumem_operator.api.pods import is_handled
from gpumem_operator.api.quantity import LARGEST_BYTES
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import charge_pod


def test_thousands_of_wrong_annotations_are_answered_with_the_first_ones() -> None:
    wrong = {f"gpumemory.dev/limit.z{number:x}": "1Gi" for number in range(9000)}
    many = [container(f"c{number}", gpus=None) for number in range(3000)]
    text = refused(pod(container(), *many, annotations=wrong), policy())
    assert "the pod has no container 'z" in text
    assert len(text) < 20_000


def test_thousands_of_unknown_annotations_give_a_few_warnings() -> None:
    unknown = {f"gpumemory.dev/x{number}": "" for number in range(9000)}
    warned = review(pod(annotations=unknown), policy()).warnings
    assert 0 < sum("means nothing" in text for text in warned) <= 5


def test_more_gpus_than_a_node_can_have_are_refused() -> None:
    text = refused(pod(container(gpus="9000000000000000000")), policy())
    assert "9000000000000000000 GPUs are more than a node can have" in text


def test_no_charge_leaves_what_a_status_can_hold() -> None:
    huge = [container(f"c{number}", memory=str(LARGEST_BYTES)) for number in range(3)]
    assert charge_pod(pod(*huge), Values()).charge_bytes == LARGEST_BYTES


def test_an_ephemeral_container_can_not_make_a_pod_look_handled() -> None:
    debug = {"name": "debug", "env": [{"name": names.LIMIT_SOURCE_ENV, "value": "Policy"}]}
    assert not is_handled(pod(ephemeralContainers=[debug]))


def test_a_mirror_pod_gets_its_declaration_and_no_container_or_token() -> None:
    mirror = pod(annotations={"kubernetes.io/config.mirror": "x"}, nodeName="n1")
    stored = admitted(mirror, policy(limits={"default": "8Gi"}))
    assert frozen(stored) == ("Policy", str(8 * 2**30))
    assert "initContainers" not in stored["spec"]
    assert "volumes" not in stored["spec"]
