"""A device plugin for the kubelet, as small as one can be.

    python -m devcluster.node.device_plugin OFFER

Its one argument is an `Offer` as JSON. It registers with the kubelet, offers devices by the
names that it is told, and gives a container with some of them their names in CDI.
It ends with the kubelet's socket that it registered with, as plugins do.

Source of the protocol: k8s.io/kubelet, pkg/apis/deviceplugin/v1beta1/api.proto.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc

from devcluster.node.cdi import qualified
from devcluster.node.grpc_server import start_server
from devcluster.node.offer import Offer
from devcluster.node.wire import field, fields

FOLDER = Path("/var/lib/kubelet/device-plugins")
VERSION = "v1beta1"
_REPLICA = re.compile(r"::\d+$")
_SECONDS = 30.0


def main(argument: str) -> None:
    """Serve until the kubelet ends or this process is ended."""
    offer = Offer.read(argument)
    endpoint = re.sub(r"\W", "-", offer.resource) + ".sock"
    socket = FOLDER / endpoint
    socket.unlink(missing_ok=True)
    server = start_server(socket, "v1beta1.DevicePlugin", _methods(offer), workers=4)
    _register(endpoint, offer.resource)
    print("registered", flush=True)
    server.wait_for_termination()


def _register(endpoint: str, resource: str) -> None:
    request = field(1, VERSION) + field(2, endpoint) + field(3, resource)
    with grpc.insecure_channel(f"unix:{FOLDER / 'kubelet.sock'}") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(request, timeout=_SECONDS, wait_for_ready=True)


def _methods(offer: Offer) -> dict[str, grpc.RpcMethodHandler]:
    def list_and_watch(_: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield b"".join(field(1, field(1, name) + field(2, "Healthy")) for name in offer.devices)
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()

    def allocate(request: bytes, _: grpc.ServicerContext) -> bytes:
        wanted = [[name.decode() for name in fields(one, 1)] for one in fields(request, 1)]
        return b"".join(field(1, _given(names)) for names in wanted)

    def nothing(_: bytes, __: grpc.ServicerContext) -> bytes:
        return b""

    return {
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch),
        "Allocate": grpc.unary_unary_rpc_method_handler(allocate),
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(nothing),
    }


def _given(names: Sequence[str]) -> bytes:
    """A ContainerAllocateResponse. NVIDIA's plugin tells a container its cards in the same way."""
    cards = sorted({_REPLICA.sub("", name) for name in names})
    variable = field(1, "NVIDIA_VISIBLE_DEVICES") + field(2, ",".join(cards))
    return field(1, variable) + b"".join(field(5, field(1, qualified(card))) for card in cards)


if __name__ == "__main__":
    main(sys.argv[1])
