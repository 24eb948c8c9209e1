"""What a person without a right is told: what is missing, why, and who can help; no URL."""

import re

from gpumem_operator.kube.errors import ApiError

FORBIDDEN = 403


def forbidden(error: ApiError) -> bool:
    """Whether the API server knows who asks, and says no."""
    return error.status == FORBIDDEN


def who(error: ApiError) -> str:
    """Whom the API server took the asker for: that is whom a role has to be bound to."""
    found = re.search(r'User "([^"]*)"', str(error))
    return f'User "{found[1]}"' if found else "you"


def may_not_read(what: str, error: ApiError, *, namespace: str) -> ApiError:
    """In place of a 403 about objects of a namespace, or of all where it is empty."""
    place = f"in namespace {namespace}" if namespace else "by a ClusterRoleBinding"
    text = f"{who(error)} may not read {'it' if '/' in what else 'them'} ({FORBIDDEN})"
    return ApiError(what, f"{text}: have ClusterRole view bound {place}", FORBIDDEN)
