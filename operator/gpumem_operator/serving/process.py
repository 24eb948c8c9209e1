"""What a process that serves many connections sets once, at its start."""

import resource
from asyncio import sslproto
from typing import Final

_READ_BYTES: Final = 16 * 2**10
"""The largest TLS record."""
_DESCRIPTORS: Final = 16384


def prepare() -> None:
    """Small buffers for TLS, and as many descriptors as connections may need.

    asyncio gives each TLS connection a buffer of 256 KiB, and as much again for each read, where an
    API server keeps dozens of connections and senders of reports a thousand. Some container
    runtimes start processes with 1,024 descriptors and let them ask for more.
    """
    sslproto.SSLProtocol.max_size = _READ_BYTES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
