"""What NVIDIA's own components write about a node with GPUs."""

from __future__ import annotations

import json

from devcluster.commands import Commands


def gpu_labels(*, cards: int, mib_per_card: int, replicas: int = 1) -> dict[str, str]:
    """The labels of GPU feature discovery, where each card is shared by `replicas` containers, and
    the one of NVIDIA's GPU operator for those who hold NVML open."""
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.deploy.client": "true",
        "nvidia.com/gpu.count": str(cards),
        "nvidia.com/gpu.memory": str(mib_per_card),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "none" if replicas == 1 else "time-slicing",
    }


def offer_gpus(
    commands: Commands, node: str, *, cards: int, mib_per_card: int, replicas: int = 1
) -> None:
    """Give a node those labels and, as its device plugin would, GPUs to request."""
    offered = {"nvidia.com/gpu": str(cards * replicas)}
    # A kubelet takes over what it finds here as what it can allocate.
    status = json.dumps({"status": {"capacity": offered, "allocatable": offered}})
    commands.kubectl("patch", "node", node, "--subresource=status", "-p", status)
    label_gpus(commands, node, cards=cards, mib_per_card=mib_per_card, replicas=replicas)


def label_gpus(
    commands: Commands, node: str, *, cards: int, mib_per_card: int, replicas: int = 1
) -> None:
    """Give a node those labels alone: a device plugin offers its GPUs."""
    labels = gpu_labels(cards=cards, mib_per_card=mib_per_card, replicas=replicas)
    pairs = [f"{key}={value}" for key, value in labels.items()]
    commands.kubectl("label", "node", node, "--overwrite", *pairs)
