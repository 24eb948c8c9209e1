from dataclasses import dataclass, fields

from vllm.config import VllmConfig
from vllm.config.cache import CacheConfig


@dataclass
class EngineArgs:
    model: str = "facebook/opt-125m"
    gpu_memory_utilization: float = CacheConfig.gpu_memory_utilization
    kv_cache_memory_bytes: "int | None" = None

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model", default=EngineArgs.model)
        parser.add_argument(
            "--gpu-memory-utilization", type=float, default=EngineArgs.gpu_memory_utilization
        )
        parser.add_argument("--kv-cache-memory-bytes", type=int)
        return parser

    @classmethod
    def from_cli_args(cls, args):
        return cls(**{one.name: getattr(args, one.name) for one in fields(cls)})

    def create_engine_config(self, usage_context=None, headless=False):
        return VllmConfig(CacheConfig(self.gpu_memory_utilization, self.kv_cache_memory_bytes))


AsyncEngineArgs = EngineArgs
