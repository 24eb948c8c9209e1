"""Objects that the offline commands read."""

from __future__ import annotations

from typing import Any

GIB = 2**30


def policy(name: str = "training", *, namespace: str = "ml", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "gpumemory.dev/v1alpha1",
        "kind": "GPUMemoryPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec or {"limits": {"default": "8Gi"}},
    }


def tenant(name: str = "research", *, limit: str = "160Gi", whole: str = "80Gi") -> dict[str, Any]:
    return {
        "apiVersion": "gpumemory.dev/v1alpha1",
        "kind": "GPUMemoryTenant",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": "research"}},
            "quota": {"limit": limit, "wholeGPU": whole},
        },
    }


def namespace(name: str = "ml", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels or {"team": "research"}},
    }


def container(name: str = "main", **limits: Any) -> dict[str, Any]:
    named = {f"nvidia.com/{key}": value for key, value in limits.items()}
    return {"name": name, "image": "train:1", "resources": {"limits": named}}


def pod(
    *containers: dict[str, Any], name: str = "train", namespace: str = "ml", **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": list(containers or [container(gpu=1)]), **spec},
    }


def workload(kind: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": list(containers or [container(gpu=1)])}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "many", "namespace": "ml"},
        "spec": {"template": template, **spec},
    }
