"""Stands for a training: holds 4 GiB of a simulated GPU until it is ended."""

import os

HOLD = ["simulated-alloc", "--gpu", "0", "--mib", "4096"]

print("holding 4 GiB on GPU 0", flush=True)
os.execvp(HOLD[0], HOLD)
