"""Objects and requests as the API server sends them, and a serving certificate."""

import json
from typing import Any

from devcluster.pki import Authority
from gpumem_operator import names

Raw = dict[str, Any]


def gpu_pod(name: str = "train", *, namespace: str = "team-a", gpus: int = 1) -> Raw:
    limits = {names.GPU_RESOURCE: str(gpus), names.MEMORY_RESOURCE: f"{8 * gpus}Gi"}
    return pod(name, namespace=namespace, limits=limits)


def cpu_pod(name: str = "web", *, namespace: str = "team-a") -> Raw:
    return pod(name, namespace=namespace, limits={"cpu": "1"})


def pod(name: str, *, namespace: str, limits: dict[str, str]) -> Raw:
    resources = {"limits": limits, "requests": dict(limits)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}]},
    }


def claim_pod(*, template: str | None = None, claim: str | None = None) -> Raw:
    result = cpu_pod("claims")
    entry: Raw = {"name": "card"}
    entry |= {"resourceClaimTemplateName": template} if template else {}
    entry |= {"resourceClaimName": claim} if claim else {}
    result["spec"]["resourceClaims"] = [entry]
    return result


def policy(
    name: str = "p", *, namespace: str = "team-a", generation: int = 1, version: str = "1"
) -> Raw:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "generation": generation,
            "resourceVersion": version,
        },
        "spec": {"limits": {"default": "8Gi"}},
    }


def tenant(name: str = "t", *, team: str = "a", generation: int = 1) -> Raw:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": generation},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": team}},
            "quota": {"limit": "160Gi", "wholeGPU": "80Gi"},
        },
    }


def namespace(name: str = "team-a", **labels: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def review(raw: Raw, *, operation: str = "CREATE", **changes: Any) -> bytes:
    request = {
        "uid": "review-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": operation,
        "namespace": raw["metadata"].get("namespace", "team-a"),
        "userInfo": {"username": "somebody"},
        "object": raw,
    }
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request | changes,
        }
    ).encode()


def key_pair(name: str = "webhook") -> tuple[bytes, bytes, bytes]:
    """Certificate, key, and the certificate of the authority behind them."""
    authority = Authority()
    pair = authority.server(name, dns=["localhost"], addresses=["127.0.0.1"])
    return pair.certificate, pair.key, authority.pair.certificate
