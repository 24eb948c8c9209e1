"""Which of the policies that have a workload as their target scales it: one of them, or none, and
then all say the same why."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold

_SHOWN: Final = 3


def who_scales(policies: Sequence[str], owners: Mapping[str, str]) -> list[Hold | None]:
    """For each entry the reason why it does not scale; None for the one that does.

    `policies` have one name for each entry, those that come first before others; `owners` are the
    policies that decide for the workload's pods, by pod, empty where none does.
    """
    names = set(owners.values())
    if len(names) > 1:
        return [_several(owners)] * len(policies)
    scaler = _first(policies, *names)
    return [
        None if place == scaler else _why_not(policies, scaler, owners)
        for place in range(len(policies))
    ]


def _first(policies: Sequence[str], owner: str | None = None) -> int | None:
    """The place of the first entry that may scale: of whom the pods are, or of anybody where
    there is no pod."""
    able = (place for place, name in enumerate(policies) if owner in (None, name))
    return next(able, None)


def _why_not(policies: Sequence[str], scaler: int | None, owners: Mapping[str, str]) -> Hold:
    if scaler is None:
        return _nobody(*next(iter(owners.items())))
    name = policies[scaler]
    return Hold(
        reasons.OTHER_POLICY_SCALES,
        f"Policy {name} has the same target and scales it: {_why_first(name, owners)}. Delete one"
        " of the two entries of spec.scaling.",
    )


def _why_first(name: str, owners: Mapping[str, str]) -> str:
    pod = next(iter(owners), None)
    return f"pod {pod} belongs to policy {name}" if pod else "its entry comes first"


def _nobody(pod: str, owner: str) -> Hold:
    if not owner:
        whose = "no policy, so none scales its workload"
        step = "let spec.selector of this policy choose the pods and create them again"
    else:
        whose = f"policy {owner}, and no other scales its workload"
        step = (
            "move the entry of spec.scaling there, or let spec.selector of this policy choose the"
            " pods and create them again"
        )
    return Hold(reasons.OTHER_POLICY_OWNS_PODS, f"Pod {pod} belongs to {whose}: {step}.")


def _several(owners: Mapping[str, str]) -> Hold:
    by_owner: dict[str, str] = {}
    for pod, owner in owners.items():
        by_owner.setdefault(owner, pod)
    shown = [
        f"{pod} to {f'policy {owner}' if owner else 'no policy'}"
        for owner, pod in sorted(by_owner.items())
    ]
    more = ", ..." if len(shown) > _SHOWN else ""
    return Hold(
        reasons.OTHER_POLICY_OWNS_PODS,
        f"Its pods belong to several policies ({', '.join(shown[:_SHOWN])}{more}), and none scales"
        " a workload of which another has a part: let spec.selector of one policy choose all of"
        " them, and create the pods again.",
    )
