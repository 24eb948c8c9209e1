"""Which details a scraper asked for beside the usual series."""

from contextvars import ContextVar
from typing import Final

PROCESSES: Final[ContextVar[bool]] = ContextVar("gpumem_process_series", default=False)
"""Set while an answer to `/metrics?processes=true` is made: series of single processes are many,
and end soon."""
