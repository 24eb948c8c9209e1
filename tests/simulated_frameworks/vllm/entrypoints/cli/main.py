import sys

from vllm.entrypoints.openai.api_server import run_server


def main():
    assert sys.argv[1] == "serve"
    run_server(["--model", *sys.argv[2:]])
