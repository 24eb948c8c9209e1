from dataclasses import dataclass


@dataclass
class CacheConfig:
    """The real one checks 0 < share <= 1, and older releases only `share > 1.0`."""

    gpu_memory_utilization: float = 0.92
    kv_cache_memory_bytes: "int | None" = None
