"""Wires the webhook process together; everything that is decided is decided elsewhere."""

import asyncio
import logging
import socket
import time
from collections.abc import Coroutine
from typing import Any

import kopf

from gpumem_operator.api.values import Values
from gpumem_operator.kube.connection import Connection, ConnectionConfigError, connection_of
from gpumem_operator.kube.reflector import Copy, Reflector
from gpumem_operator.kube.rest import Api
from gpumem_operator.metrics import server as health
from gpumem_operator.serving.process import prepare
from gpumem_operator.settings import Flags, SettingsError
from gpumem_operator.webhook import telemetry
from gpumem_operator.webhook.certificate import (
    SecretCopy,
    ServingCertificate,
    Trust,
    follow_folder,
)
from gpumem_operator.webhook.handlers import register
from gpumem_operator.webhook.nodes import NodesCopy
from gpumem_operator.webhook.reviewer import Reviewer
from gpumem_operator.webhook.sealing import SealCopy
from gpumem_operator.webhook.server import AdmissionServer
from gpumem_operator.webhook.surroundings import Copies, SurroundingsReader


async def serve(flags: Flags, values: Values) -> None:
    """Serve until SIGTERM. Raises SettingsError where the API server's address is not known."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # kopf has a line for each pod that passes. Ours are one for each refusal, and kopf's errors.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    prepare()
    try:
        connection = connection_of(flags.kubeconfig)
    except ConnectionConfigError as error:
        raise SettingsError(str(error)) from None
    async with Api(connection) as api, asyncio.TaskGroup() as background:
        copies = Copies(api, time.monotonic)
        certificate = ServingCertificate()
        surroundings = SurroundingsReader(copies, api, on_read=telemetry.UNCACHED_READS.inc)
        reviewer = Reviewer(surroundings, api, values)
        work = [reflector.run() for reflector in copies.reflectors.values()]
        sealing = SealCopy(
            reviewer.seal_with, origin=f"Secret {flags.namespace}/{flags.seal_secret}"
        )
        work.append(_secret(api, flags.namespace, str(flags.seal_secret), sealing).run())
        if flags.nodes_config_map:
            nodes = NodesCopy(reviewer.know_nodes)
            work.append(
                _one(api, flags.namespace, flags.nodes_config_map, nodes, kind="configmaps").run()
            )
        follow = _follow_certificate(flags, api, certificate, reviewer.trust)
        # A server with a certificate is asked at once, and no pod may pass without a seal.
        work.append(_after(sealing.loaded, follow))
        tasks = [background.create_task(each) for each in work]

        registry = kopf.OperatorRegistry()
        rows = register(registry, reviewer)
        server = AdmissionServer(flags.bind, flags.port, certificate=certificate, rows=rows)

        def ready() -> str | None:
            if not sealing.loaded.is_set():
                return "there is no key yet to seal declarations with"
            return _why_not_ready(copies, certificate, server)

        async with health.serve(flags.bind, flags.health_port, ready=ready):
            await _run_kopf(registry, server, connection)
        for task in tasks:
            task.cancel()


async def _run_kopf(
    registry: kopf.OperatorRegistry, server: AdmissionServer, connection: Connection
) -> None:
    settings = kopf.OperatorSettings()
    settings.admission.server = server
    settings.posting.enabled = False
    # Kinds are looked up once. Nothing is watched by kopf, so nothing needs permission for it.
    settings.scanning.disabled = True

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=connection.server,
            ca_data=connection.ca_pem.encode() if connection.ca_pem else None,
            insecure=not connection.verify,
            token=connection.bearer(),
            certificate_data=connection.client_certificate,
            private_key_data=connection.client_key,
        )

    # kopf would look for the name of its user, and in an image this one has none.
    identity: Any = socket.gethostname()
    await kopf.operator(
        registry=registry,
        settings=settings,
        standalone=True,
        clusterwide=True,
        identity=identity,
    )


def _follow_certificate(
    flags: Flags, api: Api, certificate: ServingCertificate, trust: Trust
) -> Coroutine[Any, Any, None]:
    if flags.cert_dir is not None:
        return follow_folder(certificate, flags.cert_dir, trust=trust)
    origin = f"Secret {flags.namespace}/{flags.cert_secret}"
    copy = SecretCopy(certificate, origin=origin, trust=trust)
    return _secret(api, flags.namespace, str(flags.cert_secret), copy).run()


def _secret(api: Api, namespace: str, name: str, copy: Copy) -> Reflector:
    return _one(api, namespace, name, copy, kind="secrets")


def _one(api: Api, namespace: str, name: str, copy: Copy, *, kind: str) -> Reflector:
    path = f"/api/v1/namespaces/{namespace}/{kind}"
    return Reflector(api, path, copy, parameters={"fieldSelector": f"metadata.name={name}"})


async def _after(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    try:
        await event.wait()
    except asyncio.CancelledError:
        work.close()
        raise
    await work


def _why_not_ready(
    copies: Copies, certificate: ServingCertificate, server: AdmissionServer
) -> str | None:
    if server.stopping:
        return "the process is stopping"
    if missing := copies.missing():
        return f"not listed yet: {', '.join(missing)} (are the CRDs installed?)"
    if not certificate.loaded.is_set():
        return "there is no certificate yet"
    return None if server.listening_port is not None else "the server does not listen yet"
