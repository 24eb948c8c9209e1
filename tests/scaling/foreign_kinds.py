"""Kinds of others, defined in the cluster as their projects would."""

from __future__ import annotations

import json
from typing import Any

from devcluster import Cluster


def define(
    cluster: Cluster,
    *,
    group: str,
    version: str,
    kind: str,
    schema: dict[str, Any],
    subresources: dict[str, Any] | None = None,
) -> None:
    """Have the API server serve a kind in namespaces; returns once it does."""
    singular = kind.lower()
    plural = f"{singular}s"
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": subresources or {},
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": [served],
        },
    }
    cluster.kubectl("apply", "-f", "-", input=json.dumps(definition))
    cluster.kubectl("wait", f"crd/{plural}.{group}", "--for=condition=Established")
