"""`kubectl apply` alone tells an author what is wrong, without any process of ours."""

import json

import pytest

from api.bad_objects import BAD_OBJECTS, Bad
from devcluster import Cluster

pytestmark = pytest.mark.cluster

NOT_FOR_PEOPLE = ("should match", "failed rule", "evaluating rule", "no such", "(\\", "^[", "{0,")
"""What shows through where a rule has no words: regular expressions and CEL."""


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=lambda bad: bad.id)
def test_kubectl_says_what_is_wrong_in_words(api_server: Cluster, bad: Bad) -> None:
    answer = api_server.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=json.dumps(bad.object), check=False
    )
    assert answer.returncode != 0, "it was accepted"
    assert bad.server_sentence in answer.stderr
    assert not [text for text in NOT_FOR_PEOPLE if text in answer.stderr], answer.stderr
