class WorkerBase:
    def __init__(
        self, vllm_config, local_rank, rank, distributed_init_method, is_driver_worker=False
    ):
        self.vllm_config = vllm_config
        self.cache_config = vllm_config.cache_config
        self.local_rank, self.rank = local_rank, rank
