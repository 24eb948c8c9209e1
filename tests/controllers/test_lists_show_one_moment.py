"""Paged lists, with an API server that forgets where it was."""

from collections.abc import Collection

import pytest

from gpumem_operator.kube.api import JSON, METADATA_OF_LIST, Object, Query
from gpumem_operator.kube.errors import Gone
from gpumem_operator.kube.listing import everything, pages
from gpumem_operator.kube.resources import PODS


class Pages:
    """An API server with pages of two; it forgets its place before the given requests."""

    def __init__(self, *names: str, forgets: Collection[int] = ()) -> None:
        self.names = list(names)
        self.forgets = forgets
        self.requests: list[Query] = []
        self.accepted: set[str] = set()

    async def get(self, path: str, *, query: Query | None = None, accept: str = JSON) -> Object:
        self.accepted.add(accept)
        assert path == "/api/v1/pods"
        assert query is not None
        self.requests.append(query)
        if len(self.requests) in self.forgets:
            raise Gone(path, "410 the continue token is too old", 410)
        start = int(query.get("continue", "0"))
        rest = str(start + 2) if start + 2 < len(self.names) else ""
        return {
            "metadata": {"resourceVersion": "7", "continue": rest},
            "items": [{"metadata": {"name": name}} for name in self.names[start : start + 2]],
        }


async def names_of(server: Pages) -> list[str]:
    items, version = await everything(server, PODS, labels="x")
    assert version == "7"
    return [item["metadata"]["name"] for item in items]


async def test_all_pages_are_read_with_the_same_selector() -> None:
    server = Pages("a", "b", "c", "d", "e")
    assert await names_of(server) == ["a", "b", "c", "d", "e"]
    assert [request["labelSelector"] for request in server.requests] == ["x"] * 3
    assert [request["limit"] for request in server.requests] == ["500"] * 3


@pytest.mark.parametrize(("only", "accepted"), [(False, JSON), (True, METADATA_OF_LIST)])
async def test_every_page_is_asked_for_in_the_same_form(*, only: bool, accepted: str) -> None:
    server = Pages("a", "b", "c")
    assert [page async for page in pages(server, PODS, metadata_only=only)]
    assert server.accepted == {accepted}


async def test_an_empty_cluster_is_one_empty_page() -> None:
    server = Pages()
    found = [page async for page in pages(server, PODS)]
    assert [(page.items, page.restarts) for page in found] == [([], True)]


async def test_a_list_begins_anew_where_the_server_forgot_it_and_counts_nothing_twice() -> None:
    assert await names_of(Pages("a", "b", "c", forgets={2})) == ["a", "b", "c"]


async def test_a_server_that_forgets_every_time_is_given_up() -> None:
    server = Pages("a", "b", "c", forgets={2, 4, 6, 8})
    with pytest.raises(Gone):
        await names_of(server)
    assert len(server.requests) == 8
