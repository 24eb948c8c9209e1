import multiprocessing
import os


def start(vllm_config):
    """The engine is a process of its own, unless VLLM_ENABLE_V1_MULTIPROCESSING is 0."""
    if os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
        return run(vllm_config)
    method = os.environ.get("VLLM_WORKER_MULTIPROC_METHOD", "fork")
    process = multiprocessing.get_context(method).Process(target=run, args=(vllm_config,))
    process.start()
    process.join()
    assert process.exitcode == 0


def run(vllm_config):
    import json

    from gpumem_shim import process, state
    from vllm.v1.worker.gpu_worker import Worker

    worker = Worker(vllm_config, 0, 0, "tcp://127.0.0.1:0")
    outcome = {}
    try:
        worker.init_device()
        outcome["requestedBytes"] = worker.requested_memory
        worker.initialize_from_config(worker.determine_available_memory())
    except Exception as error:
        outcome["error"] = type(error).__name__
    # The real one goes on to serve; a test wants to know.
    process.own.refresh()
    outcome["told"] = state.describe(process.own.told)
    print(json.dumps(outcome), flush=True)
