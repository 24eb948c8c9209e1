import math

import gpu
import torch

from vllm.v1.worker.worker_base import WorkerBase


class Worker(WorkerBase):
    def init_device(self):
        """Select the card, and ask for the share of it."""
        torch.cuda.set_device(self.local_rank)
        total = gpu.total(self.local_rank)
        self.requested_memory = math.ceil(total * self.cache_config.gpu_memory_utilization)
        if total - gpu.held(self.local_rank) < self.requested_memory:
            raise ValueError("Free memory on device is less than desired GPU memory utilization")

    def determine_available_memory(self):
        """What is left for the cache; a model of the stand-in holds nothing."""
        return self.cache_config.kv_cache_memory_bytes or self.requested_memory

    def initialize_from_config(self, kv_cache_bytes):
        torch.allocate(kv_cache_bytes // gpu.MIB, self.local_rank)
