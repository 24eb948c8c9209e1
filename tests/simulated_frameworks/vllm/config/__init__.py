from dataclasses import dataclass

from vllm.config.cache import CacheConfig


@dataclass
class VllmConfig:
    cache_config: CacheConfig
