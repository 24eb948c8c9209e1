from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine import core


class LLM:
    def __init__(self, model, *, gpu_memory_utilization=0.92, kv_cache_memory_bytes=None, **kwargs):
        arguments = EngineArgs(model, gpu_memory_utilization, kv_cache_memory_bytes)
        core.start(arguments.create_engine_config())
