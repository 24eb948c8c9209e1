"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import signal

pytest_plugins = ["cluster_fixtures", "installation_fixtures"]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and every child would inherit it: no test
    # of Ctrl-C could succeed there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
