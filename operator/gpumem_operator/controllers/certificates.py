"""The webhook's certificates: Secrets and caBundles, looked at every few seconds and repaired."""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gpumem_operator.certs.decision import Decision, Situation, Stored, Wishes, decide
from gpumem_operator.certs.pair import BrokenPair, Pair, read_pair
from gpumem_operator.controllers.options import CertificateOptions, Periods
from gpumem_operator.controllers.worker import attempt, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Object
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.resources import (
    MUTATING_WEBHOOKS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from gpumem_operator.metrics.controller import LEAF_EXPIRY, RECONCILE_SECONDS

_LOG = logging.getLogger(__name__)
_timed: Final = RECONCILE_SECONDS.labels("certificates").time
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1")
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"


@dataclass(frozen=True)
class _Found:
    """What was read in one pass; None for a Secret that is not there."""

    ca: Object | None
    leaf: Object | None
    configurations: tuple[tuple[str, Object], ...]
    """With the path of each."""


class CertificateWorker:
    """Keeps certificates right while this process leads."""

    def __init__(
        self,
        writer: Writer,
        *,
        options: CertificateOptions,
        namespace: str,
        periods: Periods,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._writer = writer
        self._options = options
        self._namespace = namespace
        self._periods = periods
        self._now = now
        self._wishes = Wishes(
            hosts=frozenset([*options.hosts, *LOCAL_HOSTS]), leaf_lifetime=options.leaf_lifetime
        )

    async def run(self) -> None:
        while True:
            with attempt("certificates", "one look"), _timed():
                await self.reconcile()
            await asyncio.sleep(self._periods.certificates)

    async def reconcile(self) -> None:
        """One pass. The order matters: a CA is trusted before anything that it signed is shown."""
        found = await self._gather()
        decision = decide(_situation(found), self._wishes, self._now())
        if decision.new_ca is not None:
            await self._store_ca(found.ca, decision, decision.new_ca)
        for path, configuration in found.configurations:
            await self._publish(path, configuration, decision.bundle)
        await self._store_leaf(found.leaf, decision)

    async def _gather(self) -> _Found:
        configurations = []
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            for name in self._options.webhook_configurations:
                if (found := await self._read(resource, name)) is not None:
                    configurations.append((resource.path(name), found))
        return _Found(
            ca=await self._read(SECRETS, self._options.ca_secret),
            leaf=await self._read(SECRETS, self._options.cert_secret),
            configurations=tuple(configurations),
        )

    async def _read(self, resource: Resource, name: str) -> Object | None:
        namespace = self._namespace if resource is SECRETS else ""
        try:
            return await self._writer.api.get(resource.path(name, namespace=namespace))
        except NotFound:
            return None

    async def _store_ca(self, secret: Object | None, decision: Decision, ca: Pair) -> None:
        name = self._options.ca_secret
        _LOG.warning("new CA in Secret %s: %s", name, decision.new_ca_reason)
        await self._store(name, secret, {CERTIFICATE: ca.certificate, KEY: ca.key})

    async def _publish(self, path: str, configuration: Object, bundle: bytes) -> None:
        operations = bundle_operations(configuration, bundle)
        if operations:
            await self._writer.edit(path, operations)
            _LOG.info("caBundle written: %s", path)

    async def _store_leaf(self, secret: Object | None, decision: Decision) -> None:
        name = self._options.cert_secret
        data = {BUNDLE: decision.bundle}
        if decision.new_leaf is not None:
            _LOG.info("new certificate in Secret %s: %s", name, decision.new_leaf_reason)
            data |= {CERTIFICATE: decision.new_leaf.certificate, KEY: decision.new_leaf.key}
        elif decision.leaf_waits:
            _LOG.info(
                "new certificate for Secret %s waits until its CA is trusted: %s",
                name,
                decision.new_leaf_reason,
            )
        if any(_content(secret, key) != content for key, content in data.items()):
            await self._store(name, secret, data)
        _show_expiry(decision.new_leaf or _leaf_of(secret))

    async def _store(self, name: str, secret: Object | None, data: Mapping[str, bytes]) -> None:
        """Replace the given keys of the Secret as it was read: 409 where it changed meanwhile."""
        encoded = {key: base64.b64encode(content).decode() for key, content in data.items()}
        if secret is None:
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": self._namespace},
                "type": "Opaque",
                "data": encoded,
            }
            await self._create(name, body)
        else:
            body = {**secret, "data": {**(secret.get("data") or {}), **encoded}}
            await self._writer.replace(SECRETS.path(name, namespace=self._namespace), body)

    async def _create(self, name: str, body: Object) -> None:
        try:
            await self._writer.create(SECRETS.path(namespace=self._namespace), body)
        except ApiError as error:
            if error.status != 403:
                raise
            # The chart makes both Secrets, so that nobody needs the right to create any.
            what = f"Secret {self._namespace}/{name} is gone"
            raise ApiError(what, "create it anew with `helm upgrade`", 403) from error


def bundle_operations(configuration: Mapping[str, Any], bundle: bytes) -> list[Object]:
    """The JSON patch that gives every entry of a webhook configuration this caBundle.

    Nothing else is touched, and the patch fails (422) where entries moved since they were read.
    """
    encoded = base64.b64encode(bundle).decode()
    operations: list[Object] = []
    for index, entry in enumerate(configuration.get("webhooks") or ()):
        if (entry.get("clientConfig") or {}).get("caBundle") == encoded:
            continue
        operations += [
            {"op": "test", "path": f"/webhooks/{index}/name", "value": entry["name"]},
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": encoded},
        ]
    return operations


def _situation(found: _Found) -> Situation:
    return Situation(
        ca=_stored(found.ca),
        leaf=_stored(found.leaf),
        published=tuple(
            _decode((entry.get("clientConfig") or {}).get("caBundle"))
            for _, configuration in found.configurations
            for entry in configuration.get("webhooks") or ()
        ),
    )


def _stored(secret: Object | None) -> Stored:
    return Stored(*(_content(secret, key) for key in (CERTIFICATE, KEY, BUNDLE)))


def _content(secret: Object | None, key: str) -> bytes:
    return _decode(((secret or {}).get("data") or {}).get(key))


def _decode(encoded: str | None) -> bytes:
    try:
        return base64.b64decode(encoded or "", validate=True)
    except binascii.Error:
        return b""


def _leaf_of(secret: Object | None) -> Pair | None:
    try:
        return read_pair(_content(secret, CERTIFICATE), _content(secret, KEY))
    except BrokenPair:
        return None


def _show_expiry(leaf: Pair | None) -> None:
    LEAF_EXPIRY.set(leaf.parsed.not_valid_after_utc.timestamp() if leaf else 0)
