"""What a process tells about itself over HTTP: alive, ready, and its numbers."""
