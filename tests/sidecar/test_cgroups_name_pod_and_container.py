"""Paths of /proc/PID/cgroup as kubelets and runtimes write them, and whose they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_sidecar.cgroups import Place, place_of

UID = "5f0c8f3e-1111-4222-8333-444455556666"
SYSTEMD = UID.replace("-", "_")
STATIC = "0123456789abcdef0123456789abcdef"
ID = "ab" * 32
OTHER = "cd" * 32

PATHS = {
    "v2, systemd, containerd": (
        "0::/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope",
        Place(UID, f"containerd://{ID}"),
    ),
    "v2, systemd, containerd, Guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope",
        Place(UID, f"containerd://{ID}"),
    ),
    "v2, systemd, CRI-O": (
        "0::/kubepods.slice/kubepods-besteffort.slice/"
        f"kubepods-besteffort-pod{SYSTEMD}.slice/crio-{ID}.scope",
        Place(UID, f"cri-o://{ID}"),
    ),
    "v2, systemd, CRI-O with crun's group inside": (
        f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/crio-{ID}.scope/container",
        Place(UID, f"cri-o://{ID}"),
    ),
    "the monitor of CRI-O is no container": (
        f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/crio-conmon-{ID}.scope",
        Place(UID, None),
    ),
    "v2, cgroupfs, containerd": (f"0::/kubepods/burstable/pod{UID}/{ID}", Place(UID, ID)),
    "v2, cgroupfs, CRI-O": (f"0::/kubepods/pod{UID}/crio-{ID}", Place(UID, f"cri-o://{ID}")),
    "kubelet with systemd, runtime without": (
        f"0::/system.slice/containerd.service/kubepods-burstable-pod{SYSTEMD}.slice"
        f":cri-containerd:{ID}",
        Place(UID, f"containerd://{ID}"),
    ),
    "docker through cri-dockerd": (
        f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/docker-{ID}.scope",
        Place(UID, f"docker://{ID}"),
    ),
    "kind: the node is itself a container": (
        "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        f"kubelet-kubepods-besteffort-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope",
        Place(UID, f"containerd://{ID}"),
    ),
    "kind, seen from the machine": (
        f"0::/docker/{OTHER}/kubelet/kubepods/besteffort/pod{UID}/{ID}",
        Place(UID, ID),
    ),
    "v1": (
        f"12:memory:/kubepods/burstable/pod{UID}/{ID}\n"
        f"3:cpu,cpuacct:/kubepods/burstable/pod{UID}/{ID}\n"
        f"1:name=systemd:/kubepods/burstable/pod{UID}/{ID}\n0::/",
        Place(UID, ID),
    ),
    "v1, where one controller has no groups": (
        f"12:rdma:/\n11:devices:/kubepods/pod{UID}/{ID}\n0::/system.slice/containerd.service",
        Place(UID, ID),
    ),
    "v1, systemd": (
        "4:pids:/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope\n0::/",
        Place(UID, f"containerd://{ID}"),
    ),
    "a static pod": (f"0::/kubepods/burstable/pod{STATIC}/{ID}", Place(STATIC, ID)),
    "docker inside a container": (
        f"0::/kubepods/burstable/pod{UID}/{ID}/docker/{OTHER}",
        Place(UID, ID),
    ),
    "a cluster inside a container": (
        f"0::/kubepods/pod{UID}/{ID}/kubepods/pod{STATIC}/{OTHER}",
        Place(UID, ID),
    ),
    "the pod's own group": (f"0::/kubepods/burstable/pod{UID}", Place(UID, None)),
    "another container of the pod, from inside": (
        f"0::/../cri-containerd-{ID}.scope",
        Place(None, f"containerd://{ID}"),
    ),
    "the same with cgroupfs": (f"0::/../{ID}", Place(None, ID)),
    "a process below another container": (f"0::/../{ID}/init", Place(None, ID)),
    "the same with crun's group inside": (
        f"0::/../../crio-{ID}.scope/container",
        Place(None, f"cri-o://{ID}"),
    ),
    "too far up to be in the same pod": (f"0::/../../../{ID}", Place()),
    "another pod, from inside": (
        f"0::/../../kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope",
        Place(UID, f"containerd://{ID}"),
    ),
    "a container of docker on another branch": (f"0::/../../docker/{ID}", Place()),
    "the reader's own container": ("0::/", Place()),
    "a service of the node": ("0::/system.slice/sshd.service", Place()),
    "a service whose name looks like a pod": ("0::/system.slice/pod-gc.service", Place()),
    "colons in a path": ("0::/user.slice/a:b:c", Place()),
    "nothing": ("", Place()),
    "no cgroup file at all": ("garbage", Place()),
}


@pytest.mark.parametrize(("text", "place"), PATHS.values(), ids=PATHS.keys())
def test_a_path_and_whose_it_is(text: str, place: Place) -> None:
    assert place_of(text + "\n") == place


def test_the_pause_container_is_in_the_pod_and_its_id_is_nobody_s_name() -> None:
    """Kubernetes does not tell the id of the sandbox: the operator finds no container for it."""
    path = f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/cri-containerd-{OTHER}.scope"
    assert place_of(path) == Place(UID, f"containerd://{OTHER}")


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    place = place_of(text)
    assert place.container_id is None or len(place.container_id) >= 64
