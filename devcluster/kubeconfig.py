"""Kubeconfig files that carry their certificates inside, so that one file can be handed around.

They are written as JSON, which every reader of YAML takes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from devcluster.pki import KeyPair, write_private


def write_kubeconfig(
    path: Path,
    *,
    url: str,
    ca_pem: bytes,
    user: dict[str, str],
    server_name: str | None = None,
) -> Path:
    """Write a kubeconfig of one user, see `certificate_user` and `token_user`; returns `path`.

    `server_name` is what the certificate has to be for, where that is not the host of `url`."""
    name = "devcluster"
    cluster = {"server": url, "certificate-authority-data": _encode(ca_pem)}
    if server_name is not None:
        cluster["tls-server-name"] = server_name
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": cluster,
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    write_private(path, json.dumps(content, indent=2).encode())
    return path


def certificate_user(pair: KeyPair) -> dict[str, str]:
    return {
        "client-certificate-data": _encode(pair.certificate),
        "client-key-data": _encode(pair.key),
    }


def token_user(token: str) -> dict[str, str]:
    return {"token": token}


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()
