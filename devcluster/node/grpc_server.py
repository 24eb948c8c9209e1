"""A gRPC server on a Unix socket, for what speaks with the kubelet or stands in for it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc


def start_server(
    path: Path, service: str, methods: Mapping[str, grpc.RpcMethodHandler], *, workers: int = 1
) -> grpc.Server:
    """Serve the methods of one service from now on; `service` is `package.Service`."""
    server = grpc.server(ThreadPoolExecutor(max_workers=workers))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
    server.add_insecure_port(f"unix:{path}")
    server.start()
    return server
