"""A stand-in for vLLM, which can not be run without a GPU: names and signatures that the shim and
its tests meet are those of 0.33.0, and so is the way from an argument to the worker's sizing.

tests/frameworks checks the real release for the same.
"""

__version__ = "0.33.0"


def __getattr__(name):
    if name == "LLM":
        from vllm.entrypoints.llm import LLM

        return LLM
    if name == "EngineArgs":
        from vllm.engine.arg_utils import EngineArgs

        return EngineArgs
    raise AttributeError(name)
