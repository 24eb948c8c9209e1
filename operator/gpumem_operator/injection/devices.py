"""Containers that ask for no GPU, and whose variables come from where admission can not read.

A ConfigMap may say `NVIDIA_VISIBLE_DEVICES=all`. A variable of the container itself wins over it.
"""

from gpumem_operator import names
from gpumem_operator.injection.environment import Setting, Variables


def hidden() -> Variables:
    """The variable that keeps a container away from every GPU, unless its author says so too."""
    return Variables((Setting(names.VISIBLE_DEVICES_ENV, "void"),))
