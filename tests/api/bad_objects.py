"""Objects that nobody may store, each with the sentence that its author has to read.

One table for both judges: the API server and the models must refuse the same objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from api.objects import Object, policy, tenant, with_field


@dataclass(frozen=True)
class Bad:
    """One object, and what both judges say."""

    id: str
    object: Object
    says: str
    server_says: str = ""
    """Where the schema alone refuses it, the server has words of its own."""

    @property
    def server_sentence(self) -> str:
        return self.server_says or self.says


def _policy(path: str, value: object, says: str, server_says: str = "") -> Bad:
    bad = with_field(policy(), f"spec.{path}", value)
    return Bad(f"{path}={value!r}"[:90], bad, says, server_says)


def _tenant(path: str, value: object, says: str, server_says: str = "") -> Bad:
    bad = with_field(tenant(), f"spec.{path}", value)
    return Bad(f"tenant {path}={value!r}"[:90], bad, says, server_says)


def _target(**fields: object) -> Object:
    return {"targetRef": {"kind": "Deployment", "name": "train"}, "maxReplicas": 4, **fields}


_SIGNAL: Final = {"metricName": "vllm:usage", "port": 8000, "targetValue": "0.8"}


def _scaling(id_: str, targets: list[Object], says: str, server_says: str = "") -> Bad:
    return Bad(id_, with_field(policy(), "spec.scaling", targets), says, server_says)


def _config(config: Mapping[str, str], says: str, *, version: str | None = None) -> Bad:
    bad = with_field(policy(), "spec.frameworks.pytorch.allocatorConfig", dict(config))
    if version is not None:
        bad = with_field(bad, "spec.frameworks.pytorch.minVersion", version)
    return Bad(f"allocatorConfig {dict(config)} for {version}", bad, says)


def _requirement(operator: str, values: list[str], says: str, key: str = "team") -> Bad:
    expression = {"key": key, "operator": operator, "values": values}
    return _policy("selector.matchExpressions", [expression], says)


QUANTITIES: Final = (
    _policy("limits.default", "8GB", "'8GB' is not a quantity: did you mean 8Gi?"),
    _policy("limits.default", "8gb", "'8gb' is not a quantity: did you mean 8Gi?"),
    _policy("limits.default", "8 Gi", "'8 Gi' is not a quantity: did you mean 8Gi?"),
    _policy("limits.default", "1.5 GiB", "'1.5 GiB' is not a quantity: did you mean 1.5Gi?"),
    _policy("limits.default", "lots", "'lots' is not a quantity: write for example 8Gi or 512Mi"),
    _policy("limits.default", "", "'' is not a quantity: write for example 8Gi or 512Mi"),
    _policy("limits.default", "0x10", "'0x10' is not a quantity: write for example 8Gi"),
    _policy("limits.default", ".", "'.' is not a quantity"),
    _policy("limits.default", "1e3Gi", "'1e3Gi' is not a quantity"),
    _policy("limits.default", "8Gi\n", "is not a quantity"),
    _policy("limits.default", "-1", "'-1' is negative: an amount of memory is at least 0"),
    _policy("limits.default", -1, "'-1' is negative: an amount of memory is at least 0"),
    _policy("limits.default", "-8Gi", "'-8Gi' is negative"),
    _policy("limits.default", "1.5", "'1.5' is not a whole number of bytes: write for example 153"),
    _policy("limits.default", "100m", "'100m' is not a whole number of bytes"),
    _policy("limits.default", "1.3Gi", "'1.3Gi' is not a whole number of bytes"),
    _policy(
        "limits.default", "1e30", "'1e30' is more than the largest quantity, 92233720368547758"
    ),
    _policy("limits.default", "16Ei", "'16Ei' is more than the largest quantity, 9223372036854775"),
    _policy("limits.default", "8Ei", "'8Ei' is more than the largest quantity, 922337203685477580"),
    _policy("limits.default", "0" * 33, "may not be more than 32 bytes"),
    _policy("limits.default", 1.5, "1.5 is not a quantity", "must be of type integer"),
    _policy("limits.default", True, "True is not a quantity", "must be of type integer"),
    _policy("limits.default", 0, "must be more than 0"),
    _policy("limits.min", "0", "must be more than 0"),
    _policy("limits.max", "0Gi", "must be more than 0"),
    _policy("datasetCache", {"mountPath": "/d", "sizeLimit": 0}, "must be more than 0"),
    *(
        _policy("datasetCache", {"mountPath": path, "sizeLimit": "1Gi"}, "overlaps a folder that")
        for path in ("/", "/opt", "/opt/gpumem/shim/x", "/run/gpumem/", "/mnt//x", "/mnt/../run")
    ),
    _policy("datasetCache", {"mountPath": "/d", "sizeLimit": "8GB"}, "'8GB' is not a quantity"),
    _tenant("quota.wholeGPU", 0, "must be more than 0"),
    _tenant("quota.limit", "-1Gi", "'-1Gi' is negative"),
    _tenant("quota.limit", "160GB", "'160GB' is not a quantity: did you mean 160Gi?"),
    _tenant("defaultPolicy.limits.max", "8GB", "'8GB' is not a quantity: did you mean 8Gi?"),
)

LIMITS: Final = (
    _policy("limits.min", "512Mi", "contextReserve 1Gi must be smaller than min 512Mi"),
    _policy("limits.contextReserve", "2Gi", "contextReserve 2Gi must be smaller than min 2Gi"),
    _policy("limits", {"default": "1Gi"}, "min 2Gi must not exceed default 1Gi"),
    _policy("limits", {"default": 1}, "min 2Gi must not exceed default 1"),
    _policy("limits", {"max": "1Gi"}, "min 2Gi must not exceed max 1Gi"),
    _policy("limits", {"default": "9Gi", "max": "8Gi"}, "default 9Gi must not exceed max 8Gi"),
    _tenant(
        "defaultPolicy.limits",
        {"default": "9Gi", "max": "8Gi"},
        "default 9Gi must not exceed max 8Gi",
    ),
)

_GONE: Final = "is in no PyTorch release: leave it out"

ALLOCATOR: Final = (
    _config({"growth_factor": "2"}, f"growth_factor {_GONE}"),
    _config({"growt_factor": "2"}, f"growt_factor {_GONE}"),
    _config({"expandable_segments_handle_type": "posix_fd"}, f"handle_type {_GONE}"),
    _config({"per_process_memory_fraction": "0.5"}, "can not be set here: the limit decides it"),
    _config({"max_split": "128"}, "max_split is not a key of PyTorch; these are: backend, max_"),
    _config(
        {"expandable_segments": "True"},
        "expandable_segments exists since PyTorch 2.1, and minVersion is 2.0",
    ),
    _config(
        {"graph_capture_record_stream_reuse": "True"},
        "graph_capture_record_stream_reuse exists since PyTorch 2.9, and minVersion is 2.8",
        version="2.8",
    ),
    _config(
        # As text, 2.9 would be newer than 2.10.
        {"pinned_reserve_segment_size_mb": "4"},
        "pinned_reserve_segment_size_mb exists since PyTorch 2.10, and minVersion is 2.9",
        version="2.9",
    ),
    _config(
        {"backend": "native"}, "exists since PyTorch 2.0, and minVersion is 1.13", version="1.13"
    ),
    _config(
        {"max_split_size_mb": "20"},
        "max_split_size_mb: '20' is refused by PyTorch: it takes a whole number of MiB of at least"
        " 21",
    ),
    _config({"max_split_size_mb": "1e3"}, "max_split_size_mb: '1e3' is refused by PyTorch"),
    _config({"max_split_size_mb": "-1"}, "max_split_size_mb: '-1' is refused by PyTorch"),
    _config({"large_segment_size_mb": "10"}, "MiB of at least 11", version="2.11"),
    _config(
        {"expandable_segments": "true"},
        "expandable_segments: 'true' is refused by PyTorch: it takes exactly True or False",
        version="2.1",
    ),
    _config({"backend": "cuda"}, "backend: 'cuda' is refused by PyTorch: it takes native or cuda"),
    _config({"garbage_collection_threshold": "1.0"}, "a number between 0 and 1, both excluded"),
    _config({"garbage_collection_threshold": "0"}, "a number between 0 and 1, both excluded"),
    _config({"roundup_power2_divisions": "[256:3]"}, "a power of 2, or a list with powers of 2"),
    _config({"roundup_power2_divisions": "[300:2]"}, "a power of 2, or a list with powers of 2"),
    _config({"roundup_power2_divisions": "0"}, "a power of 2, or a list with powers of 2"),
    _config({"garbage_collection_threshold": "0.99999999999999999999"}, "at most 15 digits"),
    _config({"pinned_num_register_threads": "256"}, "a power of 2 up to 128", version="2.2"),
    _config(
        {"max_split_size_mb": "32", "large_segment_size_mb": "64"},
        "max_split_size_mb 32 must not be smaller than large_segment_size_mb 64",
        version="2.11",
    ),
    _config({}, "'latest' is not a version of PyTorch: write major.minor", version="latest"),
    _config({"expandable_segments": "True"}, "'2' is not a version of PyTorch", version="2"),
)

SCALING: Final = (
    _scaling(
        "min above max",
        [_target(minReplicas=5)],
        "minReplicas 5 must not exceed maxReplicas 4",
    ),
    _scaling(
        "EngineSignal without a signal",
        [_target(metric="EngineSignal")],
        "metric EngineSignal needs engineSignal",
    ),
    _scaling(
        "a signal for Used",
        [_target(engineSignal=_SIGNAL)],
        "engineSignal is read only with metric EngineSignal, and metric is Used",
    ),
    _scaling(
        "one workload twice",
        [_target(), _target(maxReplicas=8)],
        "two entries have the same targetRef",
    ),
    *(
        _scaling(
            f"targetValue {value}",
            [_target(metric="EngineSignal", engineSignal=_SIGNAL | {"targetValue": value})],
            f"'{value}' is not a positive decimal number such as 0.8",
        )
        for value in ("0", "0.0", "-1", "80%", "1.2.3", "")
    ),
    _scaling(
        "metric name",
        [_target(metric="EngineSignal", engineSignal=_SIGNAL | {"metricName": "a b"})],
        "'a b' is not the name of a Prometheus metric",
    ),
    _scaling(
        "metric path",
        [_target(metric="EngineSignal", engineSignal=_SIGNAL | {"path": "metrics"})],
        "'metrics' is not a path such as /metrics",
    ),
    _scaling("no replicas", [_target(maxReplicas=0)], "greater than or equal to 1"),
)

SELECTORS: Final = (
    _requirement("In", [], "operator In needs at least one entry in values"),
    _requirement("NotIn", [], "operator NotIn needs at least one entry in values"),
    _requirement("Exists", ["a"], "operator Exists takes no values"),
    _requirement("DoesNotExist", ["a"], "operator DoesNotExist takes no values"),
    _requirement("In", ["a b"], "'a b' can not be the value of a label"),
    _requirement("In", ["a"], "'team name' can not be the key of a label", key="team name"),
    _policy("selector.matchLabels", {"a b": "x"}, "'a b' can not be the key of a label"),
    _policy("selector.matchLabels", {"team": "-x"}, "'-x' can not be the value of a label"),
    _tenant("namespaceSelector.matchLabels", {"team": "a/b"}, "'a/b' can not be the value"),
)

_KILL: Final = "enforcement.actions has Kill, which only the node agent can do"

ENFORCEMENT: Final = (
    _policy("enforcement.actions", ["Kill"], _KILL),
    Bad(
        "Kill with the sidecar",
        with_field(
            with_field(policy(), "spec.monitoring.mode", "Sidecar"),
            "spec.enforcement.actions",
            ["Kill"],
        ),
        _KILL,
    ),
    _tenant("defaultPolicy.enforcement.actions", ["Evict", "Kill"], _KILL),
    _policy("enforcement.actions", ["Evict", "Evict"], 'Duplicate value: "Evict"'),
)

SHAPES: Final = (
    _policy(
        "mode", "Off", "Input should be 'Active' or 'Observe'", 'supported values: "Active", "'
    ),
    _policy("priority", "10", "valid integer", "must be of type integer"),
    _policy("monitoring.intervalSeconds", 61, "61 s between two measurements are too many"),
    _policy("monitoring.intervalSeconds", 0, "greater than or equal to 1"),
    _policy("priority", 1_000_001, "less than or equal to 1000000"),
    _policy("limit", "8Gi", "spec.limit: unknown field", 'unknown field "spec.limit"'),
    _policy(
        "limits.maximum",
        "8Gi",
        "spec.limits.maximum: unknown field",
        'unknown field "spec.limits.maximum"',
    ),
    _policy(
        "frameworks.pytorch.allocatorConfig",
        {"max_split_size_mb": 128},
        "valid string",
        "must be of type string",
    ),
    _policy("datasetCache", {"mountPath": "data", "sizeLimit": "1Gi"}, "'data' is not an absolute"),
    _policy("datasetCache", {"mountPath": "/a:b", "sizeLimit": "1Gi"}, "'/a:b' is not an absolute"),
    _policy("datasetCache", {"mountPath": "/a"}, "sizeLimit: is required", "Required value"),
    _policy("injection.imagePythonPath", "/a\x00", "a path has no NUL character"),
    _tenant(
        "defaultPolicy.priority",
        1,
        "defaultPolicy.priority: unknown field",
        'unknown field "spec.defaultPolicy.priority"',
    ),
    Bad("a long name", policy("n" * 64), "the name of a policy has at most 63 characters"),
    Bad(
        "no spec",
        {key: value for key, value in policy().items() if key != "spec"},
        "spec: is required",
        "spec: Required value",
    ),
)

BAD_OBJECTS: Final = (
    *QUANTITIES, *LIMITS, *ALLOCATOR, *SCALING, *SELECTORS, *ENFORCEMENT, *SHAPES,
)  # fmt: skip
