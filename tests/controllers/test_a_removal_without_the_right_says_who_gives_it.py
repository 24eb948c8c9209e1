"""What people read where the API server does not let the controllers take a pod away."""

from typing import Any, Literal, cast

import pytest

from gpumem_operator.controllers.removal import Outcome, remove
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.steps import Removal
from gpumem_operator.kube.errors import of_status
from report_builders import measured


class Refusing:
    """Answers each write with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        self._error = of_status("PATH", {"message": message}, status)

    async def delete(self, *_: Any, **__: Any) -> None:
        raise self._error

    create = delete


async def outcome(action: Literal["Evict", "Delete"], status: int, message: str) -> Outcome:
    pod = measured("x")
    return await remove(cast(Writer, Refusing(status, message)), pod, Removal(action))


@pytest.mark.parametrize(
    ("action", "step"),
    [("Delete", "enforcement.deletePods gives them. Next step: set it to true"),
     ("Evict", "Next step: helm upgrade, or give their ClusterRole create of pods/eviction")],
)  # fmt: skip
async def test_a_right_that_is_missing_is_named_with_the_value_that_gives_it(
    action: Literal["Evict", "Delete"], step: str
) -> None:
    words = 'pods "x" is forbidden: User "ctl" cannot delete resource "pods" in API group ""'
    found = await outcome(action, 403, words)
    assert found.result == "Failed"
    assert step in found.message


async def test_what_others_forbid_is_told_in_their_words() -> None:
    found = await outcome("Delete", 403, "admission webhook guard.corp denied the request: keep")
    assert found == Outcome(
        "Failed", "PATH: 403 admission webhook guard.corp denied the request: keep"
    )
