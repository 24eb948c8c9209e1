"""The smallest policy and tenant, to build others from."""

from copy import deepcopy
from typing import Any

from gpumem_operator import names

Object = dict[str, Any]


def policy(name: str = "bad") -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {},
    }


def tenant(name: str = "bad") -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "quota": {"limit": "160Gi", "wholeGPU": "80Gi"}},
    }


def with_field(target: Object, path: str, value: object) -> Object:
    """The object with one field set; `path` is dotted, and objects on the way are made."""
    result = deepcopy(target)
    *parents, last = path.split(".")
    place = result
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
    return result
