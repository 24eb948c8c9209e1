"""KIND/NAME as kubectl takes it: what `why` is asked about. Pure."""

from difflib import get_close_matches
from typing import Final, NamedTuple

from gpumem_operator import names
from gpumem_operator.kube.resources import POLICIES, TENANTS, Resource

_APPS: Final = {"deployment": "deploy", "replicaset": "rs", "statefulset": "sts", "daemonset": "ds"}
_OBJECTS: Final = {
    **dict.fromkeys(("gmp", "policy", "policies"), names.POLICY_KIND),
    **dict.fromkeys((names.POLICY_KIND.lower(), names.POLICY_PLURAL), names.POLICY_KIND),
    **dict.fromkeys(("gmt", "tenant", "tenants"), names.TENANT_KIND),
    **dict.fromkeys((names.TENANT_KIND.lower(), names.TENANT_PLURAL), names.TENANT_KIND),
}
"""Our own kinds, as kubectl and as people name them."""


class Target(NamedTuple):
    """What is asked about."""

    kind: str
    """As events name it, for example ReplicaSet."""
    resource: Resource
    name: str


_PASCAL: Final = {
    "pod": "Pod",
    "job": "Job",
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
}


def target_of(text: str) -> Target | None:
    """From KIND/NAME as kubectl takes it; None for anything else."""
    kind, slash, name = text.partition("/")
    kind = kind.lower()
    if slash and name and (ours := _OBJECTS.get(kind)):
        return Target(ours, POLICIES if ours == names.POLICY_KIND else TENANTS, name)
    long = {"po": "pod", **{short: kind for kind, short in _APPS.items()}}
    kind = long.get(kind, kind if kind in _PASCAL else kind.removesuffix("s"))
    if not slash or not name or kind not in _PASCAL:
        return None
    group = "" if kind == "pod" else "batch" if kind == "job" else "apps"
    return Target(_PASCAL[kind], Resource(group, "v1", f"{kind}s"), name)


def misunderstood(text: str) -> str:
    """Why `text` is no target, and what was probably meant."""
    kind, slash, name = text.partition("/")
    if not slash or not name:
        return f"{text!r} names no kind: give KIND/NAME, like pod/{kind or 'train-0'}"
    known = (*_PASCAL, *_OBJECTS)
    near = get_close_matches(kind.lower(), known, n=1, cutoff=0.7)
    hint = f": did you mean {near[0]}/{name}?" if near else ""
    return f"kind {kind} is not known here{hint or f': known are {_KINDS}'}"


_KINDS: Final = f"{', '.join(_PASCAL)}, gmp (policy) and gmt (tenant)"
