"""Secrets that the controller would fill, for installations in which none runs."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

from devcluster.controlplane import Cluster
from devcluster.pki import Authority

PROVIDED_SECRET = "provided-webhook-cert"


def fill_seal(cluster: Cluster, name: str, namespace: str) -> None:
    """Make the key that admission seals declarations with, in the chart's Secret for it."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    patch = json.dumps({"data": {"seal.key": key}})
    cluster.kubectl("patch", "secret", name, "-n", namespace, "-p", patch)


def provide_certificate(cluster: Cluster, namespace: str) -> Mapping[str, Any]:
    """Make a certificate in a Secret, as its owner would; returns the values that name it."""
    authority = Authority()
    pair = authority.server("webhook", dns=["localhost"], addresses=["127.0.0.1"])
    ca = authority.pair.certificate.decode()
    content = {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode(), "ca.crt": ca}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PROVIDED_SECRET, "namespace": namespace},
        "stringData": content,
    }
    both = {"apiVersion": "v1", "kind": "List", "items": [space, secret]}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(both))
    return {
        "certificates": {"mode": "Provided", "secretName": PROVIDED_SECRET, "caBundle": ca},
    }
