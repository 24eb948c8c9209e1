"""A webhook of somebody that takes every question and answers none."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from devcluster import Cluster
from gpumem_operator.certs.pair import make_ca, make_leaf
from gpumem_operator.kube.connection import load_pair

_HOST = "127.0.0.1"


@contextmanager
def silent_about_pods(cluster: Cluster, name: str, *, labels: dict[str, str]) -> Iterator[None]:
    """No change of a pod in namespaces with these labels is answered, while it lasts; those that
    wait at its end go through."""
    with _silence() as client:
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        hook = {
            "name": "silent.example.com",
            "clientConfig": client,
            "rules": [{**pods, "operations": ["UPDATE"]}],
            "namespaceSelector": {"matchLabels": labels},
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            # Longer than anybody waits.
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        }
        cluster.kubectl("create", "-f", "-", input=json.dumps(body))
        try:
            yield
        finally:
            cluster.kubectl("delete", "validatingwebhookconfiguration", name)


@contextmanager
def _silence() -> Iterator[dict[str, Any]]:
    """A server that shakes hands and says nothing more; yields how a webhook is configured."""
    now = datetime.now(UTC)
    ca = make_ca(now)
    leaf = make_leaf(ca, frozenset({_HOST}), now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, leaf.certificate, leaf.key)
    with socket.create_server((_HOST, 0), backlog=256) as listener, ExitStack() as kept:
        taking = threading.Thread(target=_take, args=(listener, context, kept))
        taking.start()
        url = f"https://{_HOST}:{listener.getsockname()[1]}/"
        try:
            yield {"url": url, "caBundle": base64.b64encode(ca.certificate).decode()}
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            taking.join()


def _take(listener: socket.socket, context: ssl.SSLContext, kept: ExitStack) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError):
            kept.enter_context(context.wrap_socket(connection, server_side=True))
