import argparse

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.v1.engine import core


def run_server(arguments=None):
    parser = AsyncEngineArgs.add_cli_args(argparse.ArgumentParser())
    core.start(AsyncEngineArgs.from_cli_args(parser.parse_args(arguments)).create_engine_config())


if __name__ == "__main__":
    run_server()
