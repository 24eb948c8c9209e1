"""The HTTP endpoint that probes and scrapers ask."""

import aiohttp
from prometheus_client import CollectorRegistry, Counter

from gpumem_operator.metrics.server import serve


async def get(port: int, path: str, **headers: str) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}", headers=headers) as response,
    ):
        return response.status, await response.text(), response.headers["Content-Type"]


async def test_a_process_that_is_not_ready_says_why_and_is_alive_all_the_same() -> None:
    async with serve("127.0.0.1", 0, ready=lambda: "no policies read yet") as port:
        assert (await get(port, "/readyz"))[:2] == (503, "not ready: no policies read yet\n")
        assert (await get(port, "/healthz"))[0] == 200


async def test_readiness_is_asked_anew_at_every_probe() -> None:
    reasons = iter([None, "cache lost", None])
    async with serve("127.0.0.1", 0, ready=lambda: next(reasons)) as port:
        assert [(await get(port, "/readyz"))[0] for _ in range(3)] == [200, 503, 200]


async def test_numbers_of_a_leader_whose_lease_ran_out_are_not_shown() -> None:
    registry = CollectorRegistry()
    Counter("gpumem_tests", "Tests.", registry=registry)
    lapsed = iter([None, "the lease was not renewed"])
    async with serve(
        "127.0.0.1", 0, ready=lambda: None, lapsed=lambda: next(lapsed), registry=registry
    ) as port:
        assert (await get(port, "/metrics"))[0] == 200
        status, text, _ = await get(port, "/metrics")
        assert (status, text) == (503, "numbers of the past: the lease was not renewed\n")


async def test_metrics_come_in_the_format_that_the_scraper_accepts() -> None:
    registry = CollectorRegistry()
    Counter("gpumem_tests", "Tests.", registry=registry).inc()
    async with serve("127.0.0.1", 0, ready=lambda: None, registry=registry) as port:
        status, text, content_type = await get(port, "/metrics")
        assert (status, content_type.split(";")[0]) == (200, "text/plain")
        assert "gpumem_tests_total 1.0" in text
        _, text, content_type = await get(
            port, "/metrics", Accept="application/openmetrics-text; version=1.0.0"
        )
        assert content_type.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
