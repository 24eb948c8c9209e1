"""EngineSignal from end to end: a page of a pod, read by the controller."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from scaling.engines import ADDRESS, engine
from scaling.fleet import Fleet

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="takes root: pods need an address of their own"),
]


def test_a_preallocating_server_is_scaled_by_what_it_says(fleet: Callable[..., Fleet]) -> None:
    with engine() as server:
        signal = {
            "metricName": "vllm:kv_cache_usage_perc",
            "port": server.port,
            "targetValue": "0.8",
        }
        found = fleet(metric="EngineSignal", engineSignal=signal)
        found.address = ADDRESS
        # It holds all that it may from the first moment.
        found.load_gib = 100
        found.deploy(2, image="registry.example/vllm-openai:v1")
        found.runs_until(lambda: "0.8 on average of 2" in found.told().get("message", ""))
        assert found.told()["reason"] == "OnTarget"
        assert "currentPercent" not in found.told()

        server.value = "0.95"
        found.runs_until(lambda: found.replicas() == 3)
        server.value = "0.1"
        found.runs_until(lambda: found.replicas() == 1)
        server.value = "NaN"
        message = found.refused("TooManyUnknown")
        assert "(1 NotANumber)" in message
