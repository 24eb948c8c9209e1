"""The offline commands refuse what the API server refuses, in the same words."""

import pytest

from api.bad_objects import BAD_OBJECTS, Bad
from gpumem_operator import names
from gpumem_operator.api.records import policy_record, tenant_record


def problem_of(bad: Bad) -> str | None:
    if bad.object["kind"] == names.POLICY_KIND:
        return policy_record(bad.object, strict=True).problem
    return tenant_record(bad.object, strict=True).problem


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=lambda bad: bad.id)
def test_the_author_of_a_bad_file_reads_what_is_wrong(bad: Bad) -> None:
    problem = problem_of(bad)
    assert problem is not None, "it was accepted"
    assert bad.says in problem
