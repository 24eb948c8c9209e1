"""Whole lists of a kind, taken into its table.

A table that follows a watch is nearly as new as the cluster. Then the metadata of all objects say
which of them changed and which are gone, and only those are read: of ten thousand pods, whole ones
cost seconds.
"""

from typing import Any, Final

from gpumem_operator.controllers.table import Key, Table, key_of
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.listing import pages
from gpumem_operator.kube.resources import Resource

FEW: Final = 50
"""So many objects are read one by one; where more changed, a list of whole ones costs less."""


async def read_all(api: Api, resource: Resource, table: Table[Any], *, labels: str = "") -> None:
    """Read every object anew. `labels` is a label selector. Raises ApiError."""
    listed: set[str] = set()
    version = ""
    table.begin_list()
    async for page in pages(api, resource, labels=labels):
        if page.restarts:
            listed.clear()
        for raw in page.items:
            table.see(raw)
            listed.add(raw["metadata"]["uid"])
        version = page.version
    table.end_list(listed, version)


async def read_changed(
    api: Api, resource: Resource, table: Table[Any], *, labels: str = ""
) -> None:
    """Afterwards the table holds what it would after `read_all`, or what is newer.

    Needs the right to read single objects. Raises ApiError.
    """
    listed: set[str] = set()
    changed: dict[Key, str] = {}
    version = ""
    table.begin_list()
    async for page in pages(api, resource, labels=labels, metadata_only=True):
        if page.restarts:
            listed.clear()
            changed.clear()
        for raw in page.items:
            listed.add(raw["metadata"]["uid"])
            if not table.knows(raw):
                changed[key_of(raw)] = raw["metadata"]["uid"]
        version = page.version
    if len(changed) > FEW:
        await read_all(api, resource, table, labels=labels)
        return
    for key, uid in changed.items():
        await _read(api, resource, table, key, uid=uid)
    table.end_list(listed, version)


async def _read(api: Api, resource: Resource, table: Table[Any], key: Key, *, uid: str) -> None:
    """One object as it is now; one that has gone since it was listed goes from the table too."""
    try:
        found = await api.get(resource.path(key[1], namespace=key[0]))
    except NotFound:
        found = {"metadata": {}}
    if found["metadata"].get("uid") == uid:
        table.see(found)
    else:
        table.drop(key, uid)
