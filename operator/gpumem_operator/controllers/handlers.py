"""Everything that kopf watches, and where it goes: into the cache of every replica.

Events only. kopf's other handlers leave finalizers or annotations on users' objects, and the
operator being down must never keep an object from being deleted.
"""

from pathlib import Path
from typing import Any

import kopf

from gpumem_operator.controllers.cache import WATCHED_PODS, Cache
from gpumem_operator.controllers.table import Table, key_of
from gpumem_operator.kube.api import load_configuration
from gpumem_operator.kube.resources import PODS, Resource


def make_registry(cache: Cache, kubeconfig: Path | None) -> kopf.OperatorRegistry:
    """All handlers of the controller."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry, id="login")
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await _connection_info(kubeconfig)

    for resource, table in cache.tables:
        _watch(registry, cache, resource, table)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """kopf as a source of events, which writes nothing by itself."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # The kinds are there before kopf starts, so nothing has to look out for new ones.
    settings.scanning.disabled = True
    settings.watching.label_selectors[PODS.group, PODS.version, PODS.plural] = WATCHED_PODS
    settings.watching.chunk_size = 500
    settings.persistence.diffbase_storage = _NothingToCompare()
    # After an outage of the API server, events come back within seconds and not half a minute.
    settings.networking.error_backoffs = (1, 1, 2, 3, 5)
    settings.networking.request_timeout = 60
    return settings


class _NothingToCompare(kopf.DiffBaseStorage):
    """What handlers of events need of an object's earlier state: nothing.

    kopf's own storages copy an object deeply at each of its events, for handlers of changes. That
    was half of what kopf's list of ten thousand pods cost.
    """

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        raise NotImplementedError("no handler asks what an object was before")


def _watch(
    registry: kopf.OperatorRegistry, cache: Cache, resource: Resource, table: Table[Any]
) -> None:
    @kopf.on.event(
        resource.group,
        resource.version,
        resource.plural,
        registry=registry,
        id=f"see-{resource.plural}",
        # After our own list comes kopf's of the same objects: those are not handed on again.
        when=lambda event, **_: event["type"] == "DELETED" or not table.knows(event["object"]),
    )
    async def see(event: kopf.RawEvent, **_: Any) -> None:
        raw = event["object"]
        if event["type"] != "DELETED":
            table.see(raw)
        elif resource is PODS:
            cache.depart(key_of(raw), raw["metadata"]["uid"])
        else:
            table.drop(key_of(raw), raw["metadata"]["uid"])


async def _connection_info(kubeconfig: Path | None) -> kopf.ConnectionInfo:
    configuration = await load_configuration(kubeconfig)
    scheme, _, token = (configuration.api_key.get("BearerToken") or "").partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
