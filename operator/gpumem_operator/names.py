"""Every name that the product writes into a cluster or reads from one, in one place.

A name that is spelled twice is spelled differently one day, and the API server accepts both. Keys
that contain another name (an annotation per container) come from a function here.
"""

from typing import Final

GROUP: Final = "gpumemory.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

CATEGORY: Final = "gpumemory"
"""`kubectl get gpumemory` shows both kinds."""

POLICY_KIND: Final = "GPUMemoryPolicy"
POLICY_PLURAL: Final = "gpumemorypolicies"
POLICY_SHORT: Final = "gmp"
TENANT_KIND: Final = "GPUMemoryTenant"
TENANT_PLURAL: Final = "gpumemorytenants"
TENANT_SHORT: Final = "gmt"

# Labels and annotations of pods and namespaces -----------------------------------------------

MANAGED_LABEL: Final = f"{GROUP}/managed"
"""On pods: "true" where admission wrote the plan, "false" where a GPU pod slipped past it."""
POLICY_LABEL: Final = f"{GROUP}/policy"
"""On pods: name of the policy that won. Policy names have at most 63 characters for its sake."""
RESERVE_LABEL: Final = f"{GROUP}/reserve"
"""On pods, by admission: "true" asks for room before the pod is stored, instead of a gate. A label,
so that the API server finds it by an objectSelector, which costs other pods next to nothing. It
decides nothing by itself: admission writes or removes it anew."""
POLICY_HASH_ANNOTATION: Final = f"{GROUP}/policy-hash"
"""On pods: fingerprint of what the policy said about pods when this one was admitted."""
SUMMARY_ANNOTATION: Final = f"{GROUP}/summary"
"""On pods: one line for people. Nothing reads it."""
IGNORE_LABEL: Final = f"{GROUP}/ignore"
"""On namespaces: "true" keeps admission away from all pods of the namespace."""
ISOLATE_LABEL: Final = f"{GROUP}/isolate"
"""On namespaces: "true" keeps containers that ask for no GPU away from all of them."""

NODE_AFFINITY_ANNOTATION: Final = f"{GROUP}/node-affinity"
"""On pods: the node label that admission required, so that it can be taken back."""

LIMIT_ANNOTATION: Final = f"{GROUP}/limit"
"""On pods, by their author: limit per GPU for every GPU container."""
PYTHON_PATH_ANNOTATION: Final = f"{GROUP}/python-path"
"""On pods, by their author: what the image itself has in PYTHONPATH."""
PROCESSES_PER_GPU_ANNOTATION: Final = f"{GROUP}/processes-per-gpu"
"""On pods, by their author: how many processes of a container share one GPU (default 1)."""
GROUP_SIZE_ANNOTATION: Final = f"{GROUP}/group-size"
"""On pods, by their author: how many pods of one controller go through a quota together."""
LONGEST_ANNOTATION_NAME: Final = 63
"""Kubernetes' limit for the part of an annotation key behind the slash."""

LEADER_LABEL: Final = f"{GROUP}/leader"
"""On the operator's own pods: "true" on the controller that leads, which takes reports in."""
READER_HEADER: Final = "X-Gpumem-Token"
"""Token of the reader's account, on requests that come through the API server's proxy."""

OVERUSE_CONDITION: Final = f"{GROUP}/Overuse"
"""Condition of pods: a container holds more than its limit; its reason says what was begun."""

FENCE_ANNOTATION: Final = f"{GROUP}/fence"
"""On waiting pods, by the leader: its epoch, where it gave away room that was kept for the pod."""
QUOTA_GATE: Final = f"{GROUP}/quota"
"""Scheduling gate of pods, by admission: opened by the leader when the tenant has room."""
MOST_IN_A_GROUP: Final = 1000
"""Largest value of the annotation about groups: as many reservations as a tenant can have."""


def container_limit_annotation(container: str) -> str:
    """Key of the annotation that declares the limit per GPU of one container."""
    return f"{LIMIT_ANNOTATION}.{container}"


# Environment of containers ---------------------------------------------------------------------

ENV_PREFIX: Final = "GPUMEM_"
"""Reserved: a pod author's own variables with this prefix are replaced or removed."""
LIMIT_SOURCE_ENV: Final = "GPUMEM_LIMIT_SOURCE"
"""A container that carries it is "handled"; frozen at admission."""
LIMIT_BYTES_ENV: Final = "GPUMEM_LIMIT_BYTES"
"""Per GPU; present for the sources Resource, Annotation and Policy."""
SEAL_ENV: Final = "GPUMEM_SEAL"
"""Says that admission wrote the two above; see `api/seal.py`."""
SEAL_KEY: Final = "seal.key"
"""In the Secret of the key that makes these seals: the key itself."""
RESERVE_BYTES_ENV: Final = "GPUMEM_CONTEXT_RESERVE_BYTES"
CONTAINER_ENV: Final = "GPUMEM_CONTAINER"
"""Name of the container: the folder under the run volume that its processes write to."""
TENSORFLOW_MODE_ENV: Final = "GPUMEM_TENSORFLOW_MODE"
SERVER_ARGS_ENV: Final = "GPUMEM_SERVER_ARGS"
"""`Enabled` where the shim lowers the share of the card that inference servers take."""
PROCESSES_PER_GPU_ENV: Final = "GPUMEM_PROCESSES_PER_GPU"
PYTHON_PATH_ORIGIN_ENV: Final = "GPUMEM_PYTHON_PATH"
"""`Added` where PYTHONPATH may hide the image's own: the shim's hint on a missing module."""
INJECTED_ENV: Final = "GPUMEM_INJECTED"
"""Comma-separated names of what the author did not set: replaced on re-creation. Variables, parts
of one (`NAME:key`), the memory resource, and on our sidecar the next one."""
SHARED_PROCESSES_MARK: Final = "shareProcessNamespace"
"""Among these on our sidecar: the field of the pod's spec is ours."""
REPORT_URL_ENV: Final = "GPUMEM_REPORT_URL"
REPORT_CA_ENV: Final = "GPUMEM_REPORT_CA"
REPORT_INTERVAL_ENV: Final = "GPUMEM_INTERVAL_SECONDS"
PID_NAMESPACE_ENV: Final = "GPUMEM_PID_NAMESPACE"
"""`Pod` on our sidecar where the pod's containers share a PID namespace that is theirs alone."""

PYTORCH_CONF_ENV: Final = "PYTORCH_CUDA_ALLOC_CONF"
PYTORCH_NEW_CONF_ENV: Final = "PYTORCH_ALLOC_CONF"
TENSORFLOW_GROWTH_ENV: Final = "TF_FORCE_GPU_ALLOW_GROWTH"
JAX_PREALLOCATE_ENV: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"
CUPY_LIMIT_ENV: Final = "CUPY_GPU_MEMORY_LIMIT"
MPS_LIMIT_ENV: Final = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
DRIVER_REQUEST_ENV: Final = "NVIDIA_GPU_MEMORY_REQUEST"
DRIVER_LIMIT_ENV: Final = "NVIDIA_GPU_MEMORY_LIMIT"
VISIBLE_DEVICES_ENV: Final = "NVIDIA_VISIBLE_DEVICES"
DRIVER_CAPABILITIES_ENV: Final = "NVIDIA_DRIVER_CAPABILITIES"
PYTHON_PATH_ENV: Final = "PYTHONPATH"

# What the plan adds to a pod --------------------------------------------------------------------

SHIM_CONTAINER: Final = "gpumem-shim"
SIDECAR_CONTAINER: Final = "gpumem-sidecar"
OUR_CONTAINERS: Final = frozenset({SHIM_CONTAINER, SIDECAR_CONTAINER})

SHIM_VOLUME: Final = "gpumem-shim"
RUN_VOLUME: Final = "gpumem-run"
TOKEN_VOLUME: Final = "gpumem-token"
NO_TOKEN_VOLUME: Final = "gpumem-no-token"
DATASET_VOLUME: Final = "gpumem-dataset-cache"
OUR_VOLUMES: Final = frozenset(
    {SHIM_VOLUME, RUN_VOLUME, TOKEN_VOLUME, NO_TOKEN_VOLUME, DATASET_VOLUME}
)

SHIM_PATH: Final = "/opt/gpumem/shim"
RUN_PATH: Final = "/run/gpumem"
TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Mounted by our containers, so that the ServiceAccount plugin adds no token of the pod there."""
TOKEN_AUDIENCE: Final = GROUP

# GPU resources ------------------------------------------------------------------------------------

GPU_RESOURCE: Final = "nvidia.com/gpu"
SHARED_GPU_RESOURCE: Final = "nvidia.com/gpu.shared"
MIG_RESOURCE_PREFIX: Final = "nvidia.com/mig-"
MEMORY_RESOURCE: Final = "nvidia.com/memory"
"""Default of the chart value `memoryResource`."""

DRIVER_NODE_LABEL: Final = f"{GROUP}/enforcer.driver"
"""On nodes, by the controller: "true" where the agent found that the driver can limit containers.
The platform team may set both labels itself: what is not ours stays."""
MPS_NODE_LABEL: Final = f"{GROUP}/enforcer.mps"
"""On nodes: "true" where GPUs are shared by MPS."""

NODE_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
"""MiB per GPU, written by NVIDIA's GPU feature discovery."""
NODE_MODEL_LABEL: Final = "nvidia.com/gpu.product"
NODE_COUNT_LABEL: Final = "nvidia.com/gpu.count"
NODE_SHARING_LABEL: Final = "nvidia.com/gpu.sharing-strategy"

# Paths of the webhook server: ids of its handlers, and the paths in the chart ---------------------

MUTATE_POD: Final = "mutate-pod"
MUTATE_EPHEMERAL: Final = "mutate-ephemeral-containers"
ISOLATE_POD: Final = "isolate-pod"
ISOLATE_EPHEMERAL: Final = "isolate-ephemeral-containers"
CHECK_CLAIMS: Final = "check-resource-claims"
RESERVE_ROOM: Final = "reserve-room"
