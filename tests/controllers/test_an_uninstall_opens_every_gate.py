"""Nothing of ours keeps a pod from running once the release is gone, whatever others do."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.stored import Raw, pod
from gpumem_operator import names
from gpumem_operator.controllers.uninstall import open_all_gates
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, Conflict


class Server(Api):
    """Keeps gated pods; patches of those in `refusing` namespaces fail."""

    def __init__(self, *pods: Raw) -> None:
        self.pods = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in pods}
        self.refusing: set[str] = set()
        self.refused: list[str] = []
        self.overtaken: set[str] = set()
        """By name; each once."""

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        if method == "GET":
            return {"metadata": {"resourceVersion": "9"}, "items": list(self.pods.values())}
        *_, namespace, _, name = path.split("/")
        if namespace in self.refusing:
            self.refused.append(name)
            raise ApiError(f"PATCH {path}", "no answer within 15 s")
        if name in self.overtaken:
            self.overtaken.discard(name)
            raise Conflict(f"PATCH {path}", "409", 409)
        found = self.pods[namespace, name]
        self.pods[namespace, name] = found | {"spec": found["spec"] | fields["body"]["spec"]}
        return self.pods[namespace, name]

    @property
    def gated(self) -> set[str]:
        return {name for (_, name), one in self.pods.items() if one["spec"]["schedulingGates"]}


def waits(name: str, namespace: str) -> Raw:
    return pod(name, namespace=namespace, gates=(names.QUOTA_GATE,))


async def test_one_that_changed_meanwhile_is_opened_as_well() -> None:
    server = Server(waits("one", "team"), waits("other", "team"))
    server.overtaken.add("one")
    assert await open_all_gates(server) == 2
    assert server.gated == set()


async def test_one_that_changed_beside_one_that_can_not_be_opened_is_opened_as_well() -> None:
    server = Server(waits("one", "team"), waits("s1", "silent"))
    server.overtaken.add("one")
    server.refusing.add("silent")
    with pytest.raises(ApiError, match="left: 1: "):
        await open_all_gates(server)
    assert server.gated == {"s1"}


async def test_a_namespace_that_refuses_keeps_no_other_gated() -> None:
    silent = [waits(f"s{number:03}", "silent") for number in range(100)]
    server = Server(*silent, *(waits(f"t{number:03}", "team") for number in range(100)))
    server.refusing.add("silent")
    with pytest.raises(ApiError, match=r"left: 100: PATCH .*/silent/.*: no answer"):
        await open_all_gates(server)
    assert server.gated == {one["metadata"]["name"] for one in silent}
    # Each may take as long as a request may: the rest of the namespace waits for the next try.
    assert len(server.refused) < len(silent) / 2
