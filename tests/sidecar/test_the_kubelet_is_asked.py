"""The agent asks the kubelet over gRPC: answers of a real gRPC server, and of anything else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from devcluster.node.grpc_server import start_server
from devcluster.node.wire import field
from gpumem_sidecar import grpc_call
from gpumem_sidecar.assignments import Device, Given
from gpumem_sidecar.pod_resources import METHOD, SHORTEST_PAUSE_SECONDS, PodResources, read

GPU = "GPU-11111111-0000-0000-0000-000000000001"
Handler = Callable[[bytes, grpc.ServicerContext], bytes]


def container(name: str, *devices: str, resource: str = "nvidia.com/gpu") -> bytes:
    given = field(1, resource) + b"".join(field(2, device) for device in devices)
    # CPUs and memory, which every container may have: packed numbers and messages.
    others = field(3, b"\x00\x01\x02") + field(4, field(1, "memory") + b"\x10\x80\x80\x04")
    return field(1, name) + field(2, given) + others


def pod(name: str, *containers: bytes, namespace: str = "team") -> bytes:
    return field(
        1, field(1, name) + field(2, namespace) + b"".join(field(3, c) for c in containers)
    )


TRAIN = pod("train", container("main", GPU))


@contextmanager
def kubelet(path: Path, handler: Handler) -> Iterator[PodResources]:
    """A gRPC server as the kubelet's, and someone who asks it."""
    methods = {"List": grpc.unary_unary_rpc_method_handler(handler)}
    server = start_server(path, "v1.PodResourcesLister", methods)
    try:
        yield PodResources(str(path))
    finally:
        server.stop(None).wait()


@contextmanager
def impostor(path: Path, says: bytes) -> Iterator[None]:
    """Something that is no kubelet: it says this to whoever comes, and waits for his end."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.sendall(says)
                while connection.recv(4096):
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join()


def test_what_was_given_to_whom_is_read(tmp_path: Path) -> None:
    with kubelet(tmp_path / "kubelet.sock", lambda _, __: TRAIN) as pods:
        answer = pods.ask()

    assert answer.failure is None
    assert answer.given == (Given("team", "train", "main", (Device("nvidia.com/gpu", GPU),)),)


def test_devices_of_resource_claims_are_read_by_their_driver() -> None:
    device = field(1, field(1, "k8s.gpu.nvidia.com/device=gpu-0")) + field(2, "gpu.nvidia.com")
    claim = field(2, "claim") + field(3, "team") + field(4, device + field(4, "gpu-0"))
    [given] = read(pod("train", field(1, "main") + field(5, claim)))
    assert given.devices == (Device("gpu.nvidia.com", "gpu-0"),)


def test_an_answer_larger_than_any_window_of_flow_control_comes_whole(tmp_path: Path) -> None:
    many = b"".join(pod(f"train-{n}", container("main", f"{GPU}::{n}")) for n in range(4000))
    assert len(many) > 4 * 65535
    with kubelet(tmp_path / "kubelet.sock", lambda _, __: many) as pods:
        assert len(pods.ask().given) == 4000


def test_an_error_of_the_kubelet_is_told_with_its_words(tmp_path: Path) -> None:
    def refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        raise AssertionError("abort raises")

    with kubelet(tmp_path / "kubelet.sock", refuse) as pods:
        assert pods.ask().failure == "gRPC status 8: rejected by rate limit"


def test_where_nobody_listens_nothing_is_known(tmp_path: Path) -> None:
    answer = PodResources(str(tmp_path / "none.sock")).ask()
    assert answer.given == ()
    assert "No such file or directory" in str(answer.failure)


def test_an_answer_that_is_no_list_is_told(tmp_path: Path) -> None:
    with kubelet(tmp_path / "kubelet.sock", lambda _, __: b"\x0a\xff") as pods:
        assert "the answer can not be read" in str(pods.ask().failure)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        pytest.param(b"", "no answer within 0.2 s", id="silence"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", "no answer within 0.2 s", id="another protocol"),
        pytest.param(bytes.fromhex("00000104000000000000"), "no HTTP/2", id="a malformed frame"),
        pytest.param(
            bytes.fromhex("0000000400000000000000080700000000000000000000000000"),
            "the other side broke off",
            id="GOAWAY",
        ),
    ],
)
def test_whatever_answers_it_ends_in_time(tmp_path: Path, says: bytes, why: str) -> None:
    path = tmp_path / "kubelet.sock"
    with impostor(path, says), pytest.raises(grpc_call.CallFailed, match=why):
        grpc_call.call(str(path), METHOD, 0.2)


def test_too_large_an_answer_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_call, "LARGEST_ANSWER", 1000)
    with kubelet(tmp_path / "kubelet.sock", lambda _, __: TRAIN * 100) as pods:
        assert pods.ask().failure == "an answer of more than 1000 bytes"


def test_it_is_asked_once_a_second_however_often_samples_are_taken(tmp_path: Path) -> None:
    asked: list[bytes] = []
    now = [0.0]

    def count(request: bytes, _: grpc.ServicerContext) -> bytes:
        asked.append(request)
        return TRAIN

    path = tmp_path / "kubelet.sock"
    with kubelet(path, count):
        pods = PodResources(str(path), clock=lambda: now[0])
        assert pods.ask() == pods.ask()
        assert len(asked) == 1
        now[0] += SHORTEST_PAUSE_SECONDS
        pods.ask()
        assert asked == [b"", b""]


def test_what_was_given_is_forgotten_when_it_can_not_be_asked_about_any_more(
    tmp_path: Path,
) -> None:
    now = [0.0]
    path = tmp_path / "kubelet.sock"
    with kubelet(path, lambda _, __: TRAIN):
        pods = PodResources(str(path), clock=lambda: now[0])
        assert pods.ask().given
    now[0] += SHORTEST_PAUSE_SECONDS
    assert pods.ask().given == ()


@for_all(st.binary(max_size=200))
def test_no_bytes_do_more_harm_than_being_refused(message: bytes) -> None:
    try:
        read(message)
    except ValueError:
        return


@for_all(st.lists(st.tuples(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3))))
def test_every_text_is_read_as_it_was_written(pods: list[tuple[str, list[str]]]) -> None:
    message = b"".join(pod(name, container("main", *devices)) for name, devices in pods)
    found = [(one.pod_name, [device.id for device in one.devices]) for one in read(message)]
    assert found == pods
