"""What the leader knows of the pods of a namespace, by uid."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpumem_operator.cli.leader import Release, ask, why_not_asked, why_unknown
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError

Row = Mapping[str, Any]


class Usage(NamedTuple):
    """Rows by the uid of the pod."""

    pods: Mapping[str, Row]
    others: Mapping[str, list[Row]]
    """Of pods that are none of those: they ask for no GPU, or have ended."""
    unknown: str = ""
    """Why the leader did not answer; empty where it did."""

    def of(self, uid: str) -> Row | None:
        """Empty where the leader knows no such pod, None where it did not answer."""
        return None if self.unknown else self.pods.get(uid, {})


async def usage_in(api: Api, release: Release, namespace: str, notes: list[str]) -> Usage:
    """With a note where the leader did not answer."""
    try:
        document = await ask(api, release, namespace=namespace)
    except ApiError as error:
        notes.append(why_not_asked(error, release))
        return Usage({}, {}, why_unknown(error))
    others: defaultdict[str, list[Row]] = defaultdict(list)
    for row in document.get("others") or ():  # an older leader tells none
        others[row["podUid"]].append(row)
    return Usage({row["uid"]: row for row in document["pods"]}, others)
