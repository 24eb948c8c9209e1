"""A pod-resources socket as the kubelet's, with as many GPU containers as a full node has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from devcluster.node.grpc_server import start_server
from devcluster.node.wire import field

CONTAINERS = 32


@contextmanager
def pod_resources(path: Path) -> Iterator[None]:
    """Serve until the block ends."""
    answer = b"".join(_pod(number) for number in range(CONTAINERS))
    methods = {"List": grpc.unary_unary_rpc_method_handler(lambda *_: answer)}
    server = start_server(path, "v1.PodResourcesLister", methods)
    try:
        yield
    finally:
        server.stop(None).wait()


def _pod(number: int) -> bytes:
    devices = field(1, "nvidia.com/gpu") + field(2, f"0::{number}")
    container = field(1, "main") + field(2, devices)
    return field(1, field(1, f"train-{number}") + field(2, "team") + field(3, container))
