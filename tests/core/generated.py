"""Pods, policies and tenants of all shapes, for property tests."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from builders import NAMESPACE, OLD, YOUNG, Raw
from gpumem_operator import names
from gpumem_operator.api.records import (
    PolicyRecord,
    TenantRecord,
    policy_record,
    tenant_record,
)

CAPS = (names.CUPY_LIMIT_ENV, names.MPS_LIMIT_ENV)
ALLOCATOR = (names.PYTORCH_CONF_ENV, names.PYTORCH_NEW_CONF_ENV)
SETTINGS = (names.JAX_PREALLOCATE_ENV, names.TENSORFLOW_GROWTH_ENV)
DRIVER = (names.DRIVER_REQUEST_ENV, names.DRIVER_LIMIT_ENV)

_VALUES = {
    names.CUPY_LIMIT_ENV: ["", "0", "1000", "50%", "8589934592", "9" * 40, "x"],
    names.MPS_LIMIT_ENV: ["", "0=1G", "0=1G,1=999G", "0=0", "1=2048M", "GPU-1=1G", "x"],
    names.PYTORCH_CONF_ENV: [
        *("", "max_split_size_mb:64", " backend:native ,", "growth_factor:2"),
        *("roundup_power2_divisions:[256:1,>:8],max_split_size_mb:30", "expandable_segments:x"),
    ],
    names.TENSORFLOW_GROWTH_ENV: ["true", "1", ""],
    names.JAX_PREALLOCATE_ENV: ["true", "false", ""],
    names.PYTHON_PATH_ENV: [
        *("", "/app", ":/app:", ":", names.SHIM_PATH, f"{names.SHIM_PATH}:/app", "$(A)/lib"),
        f"{names.SHIM_PATH}s:/x",
    ],
    names.INJECTED_ENV: [
        *("", "A", f"A,{names.PYTHON_PATH_ENV},{names.CUPY_LIMIT_ENV}"),
        f"{names.PYTORCH_CONF_ENV}:max_split_size_mb,{names.PYTORCH_CONF_ENV}",
    ],
    names.VISIBLE_DEVICES_ENV: ["void", "none", "all", "0", ""],
}
_VALUES[names.PYTORCH_NEW_CONF_ENV] = _VALUES[names.PYTORCH_CONF_ENV]
_OTHERS = ["A", "B", "PATH", names.LIMIT_BYTES_ENV, names.LIMIT_SOURCE_ENV, "GPUMEM_X", *DRIVER]
_NAMES = [*_VALUES, *_OTHERS]


@st.composite
def env_entries(draw: st.DrawFn, *, usual: bool = False) -> Raw:
    """One variable in any of its forms; `usual` leaves out what pretends to come from us."""
    reserved = (names.ENV_PREFIX, names.VISIBLE_DEVICES_ENV)
    pool = [name for name in _NAMES if not (usual and name.startswith(reserved))]
    name = draw(st.sampled_from(pool))
    form = draw(st.sampled_from(["value", "value", "value", "absent", "reference", "variable"]))
    if form == "reference":
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    if form == "variable":
        return {"name": name, "value": "$(A)"}
    if form == "absent":
        return {"name": name}
    values = [v for v in _VALUES.get(name, ["1", "x"]) if not (usual and names.SHIM_PATH in v)]
    return {"name": name, "value": draw(st.sampled_from(values))}


_LIMITS: list[Raw] = [
    {},
    {"cpu": "1"},
    {"nvidia.com/gpu": "1"},
    {"nvidia.com/gpu": "2"},
    {"nvidia.com/gpu": "8", "nvidia.com/memory": "64Gi"},
    {"nvidia.com/gpu": "1", "nvidia.com/memory": "8Gi"},
    {"nvidia.com/gpu": "3", "nvidia.com/memory": "10G"},
    {"nvidia.com/gpu": "1", "nvidia.com/memory": "80Gi"},
    {"nvidia.com/gpu.shared": "1"},
    {"nvidia.com/gpu.shared": "1", "nvidia.com/memory": "4Gi"},
    {"nvidia.com/mig-1g.10gb": "1"},
    {"nvidia.com/mig-3g.40gb": "2", "nvidia.com/memory": "20Gi"},
    {"nvidia.com/mig-odd": "1"},
    {"nvidia.com/mig-1g.10gb": "1", "nvidia.com/gpu": "1"},
    {"nvidia.com/gpu": "0"},
]
_PATHS = ["/data", "/opt", "/mnt/ramdisk", "/mnt/ramdisk/in", "/run/other"]
_OUR_PATHS = ["/run/gpumem", "/opt/gpumem/shim/", "/opt//gpumem/shim/x", "/run/gpumem/y"]


@st.composite
def mounts(draw: st.DrawFn, *, usual: bool = False) -> Raw:
    volumes = ["data", "more"] if usual else ["data", *sorted(names.OUR_VOLUMES)]
    built: Raw = {"name": draw(st.sampled_from(volumes))}
    built["mountPath"] = draw(st.sampled_from(_PATHS if usual else _PATHS + _OUR_PATHS))
    if draw(st.booleans()):
        built["readOnly"] = True
    if draw(st.booleans()):
        built["subPath"] = "x"
    return built


@st.composite
def containers(draw: st.DrawFn, name: str, *, usual: bool = False) -> Raw:
    built: Raw = {"name": name, "image": "image:1"}
    limits = draw(st.sampled_from(_LIMITS))
    if limits:
        built["resources"] = {"limits": dict(limits), "requests": dict(limits)}
    entries = draw(st.lists(env_entries(usual=usual), max_size=6))
    if entries:
        built["env"] = entries
    if draw(st.booleans()):
        built["envFrom"] = [{"configMapRef": {"name": "c"}}]
    taken = draw(
        st.lists(mounts(usual=usual), max_size=3, unique_by=lambda mount: mount["mountPath"])
    )
    if taken:
        built["volumeMounts"] = taken
    if draw(st.booleans()):
        built["ports"] = [{"containerPort": draw(st.sampled_from([80, 9433]))}]
    return built


_ANNOTATIONS = {
    names.LIMIT_ANNOTATION: ["8Gi", "4Gi", "5G"],
    names.container_limit_annotation("app0"): ["8Gi", "6Gi"],
    names.PYTHON_PATH_ANNOTATION: ["/image", ""],
    names.PROCESSES_PER_GPU_ANNOTATION: ["1", "2", "64"],
    names.POLICY_HASH_ANNOTATION: ["forged"],
    "other": ["x"],
}


_ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
_ABLE = {"key": names.DRIVER_NODE_LABEL, "operator": "In", "values": ["true"]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS: list[list[Raw]] = [
    [{"matchExpressions": [_ZONE]}, {"matchFields": [{**_ZONE, "key": "metadata.name"}]}],
    [{"matchExpressions": [_ABLE]}, {}],
    [{"matchExpressions": [_ABLE, _ZONE, _ABLE]}],
]
_AFFINITIES: list[Raw] = [
    {"podAffinity": {}},
    *({"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}} for terms in _TERMS),
]


@st.composite
def pods(draw: st.DrawFn, *, usual: bool = False) -> Raw:
    """A pod that the API server could send; `usual` has nothing that pretends to come from us."""
    metadata: Raw = {"name": "pod", "namespace": NAMESPACE}
    if draw(st.booleans()):
        metadata["labels"] = {"app": "x", **_some(draw, {names.POLICY_LABEL: ["forged"]})}
    if draw(st.booleans()):
        metadata["annotations"] = _some(draw, _ANNOTATIONS)
    count = draw(st.integers(1, 3))
    spec: Raw = {"containers": [draw(containers(f"app{i}", usual=usual)) for i in range(count)]}
    init = [draw(containers(f"init{i}", usual=usual)) for i in range(draw(st.integers(0, 2)))]
    for one in init:
        if draw(st.booleans()):
            one["restartPolicy"] = "Always"
    if not usual and draw(st.booleans()):
        ours = draw(st.sampled_from(sorted(names.OUR_CONTAINERS)))
        init.insert(0, {"name": ours, "image": "evil", "env": [{"name": "A", "value": "b"}]})
    if init:
        spec["initContainers"] = init
    volumes: list[Raw] = [{"name": "data", "emptyDir": {}}, {"name": "more", "secret": {}}]
    if not usual and draw(st.booleans()):
        volumes.append({"name": draw(st.sampled_from(sorted(names.OUR_VOLUMES))), "secret": {}})
    spec["volumes"] = volumes
    for key in ("hostPID", "hostNetwork", "shareProcessNamespace"):
        if draw(st.integers(0, 3)) == 0:
            spec[key] = draw(st.booleans())
    if draw(st.integers(0, 2)) == 0:
        spec["affinity"] = draw(st.sampled_from(_AFFINITIES))
    if draw(st.integers(0, 9)) == 0:
        spec["os"] = {"name": "windows"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _some(draw: st.DrawFn, choices: dict[str, list[str]]) -> dict[str, str]:
    chosen = draw(st.sets(st.sampled_from(sorted(choices))))
    return {key: draw(st.sampled_from(choices[key])) for key in sorted(chosen)}


def _either(**choices: list[Any]) -> st.SearchStrategy[Raw]:
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) for key, values in choices.items()}
    )


_CONFIGS: list[Raw] = [{}, {"max_split_size_mb": "128"}, {"backend": "cudaMallocAsync"}]

policy_specs: st.SearchStrategy[Raw] = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["Active", "Observe"]),
        "limits": _either(
            default=["8Gi", "4Gi", "5G"], max=["40Gi", "200Gi"], contextReserve=["0", "512Mi"]
        ),
        "frameworks": st.fixed_dictionaries(
            {},
            optional={
                "pytorch": _either(allocatorConfig=_CONFIGS),
                "tensorflow": _either(mode=["Limit", "Growth", "Default"]),
                "jax": _either(preallocation=["Disabled", "Enabled", "Default"]),
            },
        ),
        "injection": _either(
            existingEnv=["Merge", "Keep", "Override"],
            shim=["Enabled", "Disabled"],
            imagePythonPath=["", "/image", "/a:/b"],
        ),
        "enforcement": _either(minimumEnforcer=["None", "MPS", "Driver"]),
        "monitoring": _either(mode=["Sidecar", "NodeAgent", "None"], intervalSeconds=[1, 60]),
        "datasetCache": st.sampled_from(
            [
                {"mountPath": "/mnt/ramdisk", "sizeLimit": "1Gi"},
                {"mountPath": "/mnt", "sizeLimit": 5},
            ]
        ),
    },
)
"""Everything that a policy can say about pods."""


@st.composite
def policies(draw: st.DrawFn, /, name: str = "policy", **said: Any) -> PolicyRecord:
    created = draw(st.sampled_from([OLD, YOUNG, ""]))
    metadata = {"name": name, "namespace": NAMESPACE, "creationTimestamp": created}
    record = policy_record({"metadata": metadata, "spec": {**draw(policy_specs), **said}})
    assert record.problem is None, record.problem
    return record


@st.composite
def tenants(draw: st.DrawFn, /, name: str = "tenant", limit: str = "9Ti") -> TenantRecord:
    quota = {
        "limit": limit,
        "wholeGPU": draw(st.sampled_from(["80Gi", "24Gi"])),
        "exclusiveGPU": draw(st.sampled_from(["Declared", "Whole"])),
        "onExceeded": draw(st.sampled_from(["Queue", "Reject", "Warn"])),
    }
    spec: Raw = {"namespaceSelector": {}, "quota": quota}
    if draw(st.booleans()):
        spec["defaultPolicy"] = draw(policy_specs)
    record = tenant_record({"metadata": {"name": name}, "spec": spec})
    assert record.problem is None, record.problem
    return record


deciders: st.SearchStrategy[list[PolicyRecord | TenantRecord]] = st.one_of(
    st.tuples(policies()),
    st.tuples(tenants()),
    st.tuples(policies(), tenants()),
    st.tuples(policies("a", priority=1), policies("b"), tenants("t"), tenants("u")),
).map(list)
"""What may surround a pod that somebody decides for."""


def as_stored(raw: Raw) -> Raw:
    """The pod as the API server gives it back: defaults, a token volume, labels."""
    pod = copy.deepcopy(raw)
    spec = pod["spec"]
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("tolerations", [{"key": "k", "operator": "Exists"}])
    spec["volumes"] = [*spec.get("volumes", []), {"name": "kube-api-access-x", "projected": {}}]
    for kind in ("containers", "initContainers"):
        for one in spec.get(kind) or ():
            one.setdefault("imagePullPolicy", "IfNotPresent")
            one.setdefault("terminationMessagePath", "/dev/termination-log")
            one.setdefault("terminationMessagePolicy", "File")
            one.setdefault("resources", {})
            taken = [mount["mountPath"] for mount in one.get("volumeMounts") or ()]
            if names.TOKEN_PATH not in taken:
                token = {
                    "name": "kube-api-access-x",
                    "readOnly": True,
                    "mountPath": names.TOKEN_PATH,
                }
                one["volumeMounts"] = [*(one.get("volumeMounts") or ()), token]
    pod["metadata"].setdefault("labels", {})["job-name"] = "job"
    return pod


def as_exported(raw: Raw) -> Raw:
    """What `kubectl get -o yaml` shows of a running pod."""
    pod = as_stored(raw)
    pod["metadata"].update(uid="u", resourceVersion="7", creationTimestamp=OLD, managedFields=[])
    pod["spec"]["nodeName"] = "node"
    pod["status"] = {"phase": "Running"}
    return pod


def after_other_webhooks(raw: Raw) -> Raw:
    """What other webhooks do to all pods: a variable everywhere, containers in front and behind."""
    pod = copy.deepcopy(raw)
    spec = pod["spec"]
    spec["initContainers"] = [{"name": "mesh-init", "image": "m"}, *spec.get("initContainers", [])]
    spec["containers"] = [*spec["containers"], {"name": "mesh", "image": "m"}]
    for kind in ("containers", "initContainers"):
        for one in spec[kind]:
            one["env"] = [*(one.get("env") or ()), {"name": "MESH", "value": "on"}]
    pod["metadata"].setdefault("annotations", {})["mesh"] = "on"
    return pod
