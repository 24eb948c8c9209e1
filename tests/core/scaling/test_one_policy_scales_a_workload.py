"""Several policies with one target: exactly one scales it, or all say the same why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from gpumem_operator.scaling.scaler import who_scales

unhurried = rules(deadline=None)


def reasons(policies: list[str], owners: dict[str, str]) -> list[str | None]:
    return [why.reason if why else None for why in who_scales(policies, owners)]


@pytest.mark.parametrize(
    ("policies", "owners", "expected"),
    [
        pytest.param(["a"], {}, [None], id="alone, without pods"),
        pytest.param(["a", "b"], {}, [None, "OtherPolicyScales"], id="without pods the first"),
        pytest.param(["a"], {"p": "a"}, [None], id="its own pods"),
        pytest.param(["a", "b"], {"p": "b"}, ["OtherPolicyScales", None],
                     id="whose pods they are, though another comes first"),
        pytest.param(["a", "a"], {"p": "a"}, [None, "OtherPolicyScales"],
                     id="two entries of one policy, by two versions of one group"),
        pytest.param(["a"], {"p": "c"}, ["OtherPolicyOwnsPods"], id="pods of another"),
        pytest.param(["a", "b"], {"p": "c"}, ["OtherPolicyOwnsPods"] * 2,
                     id="pods of one without this target"),
        pytest.param(["a"], {"p": ""}, ["OtherPolicyOwnsPods"], id="pods of nobody"),
        pytest.param(["a", "b"], {"p": "a", "q": "b"}, ["OtherPolicyOwnsPods"] * 2,
                     id="each has a part"),
    ],
)  # fmt: skip
def test_who_scales(
    policies: list[str], owners: dict[str, str], expected: list[str | None]
) -> None:
    assert reasons(policies, owners) == expected


def test_the_next_step_is_named() -> None:
    [other] = who_scales(["a"], {"p-1": "c"})
    assert other is not None
    assert other.message == (
        "Pod p-1 belongs to policy c, and no other scales its workload: move the entry of"
        " spec.scaling there, or let spec.selector of this policy choose the pods and create them"
        " again."
    )
    [parted] = who_scales(["a"], {"p-1": "a", "p-2": "a", "p-3": ""})
    assert parted is not None
    assert "(p-3 to no policy, p-1 to policy a)" in parted.message


NAMES = st.sampled_from(["a", "b", "c", "d"])
OWNERS = st.dictionaries(
    st.sampled_from(["p", "q", "r", "s"]), st.sampled_from(["a", "b", "c", ""])
)


@unhurried
@given(st.lists(NAMES, min_size=1, max_size=5), OWNERS)
def test_there_is_never_a_circle(policies: list[str], owners: dict[str, str]) -> None:
    answers = who_scales(policies, owners)
    scalers = [name for name, why in zip(policies, answers, strict=True) if why is None]
    others = {why for why in answers if why is not None}
    if not scalers:
        assert len(others) == 1, "all say the same"
        return
    [scaler] = scalers
    assert set(owners.values()) <= {scaler}
    assert all(
        f"Policy {scaler} has the same target and scales it" in why.message for why in others
    )
