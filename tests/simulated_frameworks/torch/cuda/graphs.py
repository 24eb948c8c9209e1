class CUDAGraph:
    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Begin capturing CUDA work on the current stream."""

    def capture_end(self):
        """End CUDA graph capture on the current stream."""
