"""The role `uninstall`: nothing of ours keeps a pod from running once the release is gone.

The webhook configurations go first, so that no pod gets a gate any more and none is refused because
the webhooks end; then every gate is opened. A leader that still runs opens gates as well, and is in
nobody's way.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator.api.gates import is_gated, without_gate
from gpumem_operator.api.values import Values
from gpumem_operator.kube.api import Api, Patch, connect
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.listing import pages
from gpumem_operator.kube.resources import MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from gpumem_operator.settings import Flags

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 16
"""Gates that are being opened at the same time."""


def run(flags: Flags, _: Values) -> int:
    """Take the webhooks away and open all gates; the exit status is 1 where that failed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(_run(flags))
    except ApiError as error:
        _LOG.error(
            "%s: gates may be left; run this again, or open them as docs/tenants.md says", error
        )
        return 1
    return 0


async def _run(flags: Flags) -> None:
    async with connect(flags.kubeconfig) as api:
        for name in flags.webhook_configurations:
            await take_webhooks_away(api, name)
        opened = await open_all_gates(api)
        _LOG.info("%d gates opened", opened)


async def take_webhooks_away(api: Api, name: str) -> None:
    """Delete both configurations of this name, as far as they are there. Raises ApiError."""
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        try:
            await api.request("DELETE", kind.path(name))
        except NotFound:
            continue
        _LOG.info("%s %s deleted", kind.plural, name)


async def open_all_gates(api: Api) -> int:
    """Open the gates of all pods, whatever their labels, until a list shows none.

    Returns how many were opened. Raises ApiError where only such are left that can not be opened:
    webhooks of others may refuse changes of pods, or never answer, and hold up no other namespace.
    """
    opened = 0
    while True:
        gated = [pod async for page in pages(api, PODS) for pod in page.items if is_gated(pod)]
        if not gated:
            return opened
        opener = _Round(api)
        done = sum(await asyncio.gather(*map(opener.open, gated)))
        if not done and not opener.overtaken and opener.failed:
            error = next(iter(opener.failed.values()))
            raise ApiError(f"Gates of pods that are left: {len(gated)}", str(error)) from error
        opened += done


class _Round:
    """One try at each of some pods, of which a namespace gets no further ones once one failed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.failed: dict[str, ApiError] = {}
        """By namespace."""
        self.overtaken = False
        """Whether a pod changed meanwhile, and may be open or may be opened now."""

    async def open(self, pod: Mapping[str, Any]) -> bool:
        """Whether it was this that opened the gate; a pod that changed is listed again."""
        metadata = pod["metadata"]
        path = PODS.path(metadata["name"], namespace=metadata["namespace"])
        body = without_gate(pod, uid=metadata["uid"], version=metadata["resourceVersion"])
        async with self._places:
            if metadata["namespace"] in self.failed:
                return False
            try:
                await self._api.patch(path, body, kind=Patch.MERGE)
            except (NotFound, Conflict):
                self.overtaken = True
                return False
            except ApiError as error:
                self.failed[metadata["namespace"]] = error
                return False
        return True
