"""Commands that ask a cluster. What they need is imported when they run: the client library takes a
second, and the commands that read files do without it."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gpumem_operator.cli.terminal import remark

if TYPE_CHECKING:
    from gpumem_operator.cli.cluster import Access

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Default: $KUBECONFIG, else ~/.kube/config."),
]
Context = Annotated[str | None, typer.Option("--context", help="Of the kubeconfig.")]
Namespace = Annotated[
    str | None, typer.Option("-n", "--namespace", help="Default: that of the context.")
]
As = Annotated[
    str | None, typer.Option("--as", metavar="USER", help="Ask as this user; you need the right.")
]
AsGroup = Annotated[
    list[str] | None,
    typer.Option("--as-group", metavar="GROUP", help="And as a member of it; may be repeated."),
]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Refresh every 5 s.")]
ReleaseNamespace = Annotated[
    str, typer.Option("--release-namespace", help="Where the operator is installed.")
]
ReleaseName = Annotated[str, typer.Option("--release-name", help="Name of what the chart made.")]


class Form(StrEnum):
    """Forms of the output."""

    TABLE = "table"
    JSON = "json"


class Text(StrEnum):
    """Forms of an explanation."""

    TEXT = "text"
    JSON = "json"


def top(
    namespace: Namespace = None,
    every: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="All namespaces, and all cards.")
    ] = False,
    watch: Watch = False,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form.")] = Form.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_user: As = None,
    as_group: AsGroup = None,
    release_namespace: ReleaseNamespace = "gpumem-system",
    release_name: ReleaseName = "gpu-memory-operator",
) -> None:
    """Show what pods hold of GPU memory, the largest first."""
    from gpumem_operator.cli import cluster, leader
    from gpumem_operator.cli import top as command

    as_json = _is_json(output, watch)
    access = cluster.Access(kubeconfig, context, as_user, tuple(as_group or ()))
    chosen = "" if every else namespace or cluster.current_namespace(access)
    release = leader.Release(release_namespace, release_name)

    async def work(api: Any) -> None:
        await command.run(api, release, namespace=chosen, watch=watch, as_json=as_json)

    _with_cluster(work, access)


def tenants(
    tenant: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One in detail; default: all.")
    ] = None,
    _namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help="Taken as kubectl does: tenants are in none."),
    ] = None,
    watch: Watch = False,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form.")] = Form.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_user: As = None,
    as_group: AsGroup = None,
    release_namespace: ReleaseNamespace = "gpumem-system",
    release_name: ReleaseName = "gpu-memory-operator",
) -> None:
    """Show what tenants may take, are charged, and hold."""
    from gpumem_operator.cli import cluster, leader
    from gpumem_operator.cli import tenants as command

    as_json = _is_json(output, watch)
    access = cluster.Access(kubeconfig, context, as_user, tuple(as_group or ()))
    release = leader.Release(release_namespace, release_name)

    async def work(api: Any) -> None:
        await command.run(api, release, tenant=tenant or "", watch=watch, as_json=as_json)

    _with_cluster(work, access)


def why(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME",
            help="A pod, deployment, replicaset, statefulset, daemonset, job, gmp or gmt.",
        ),
    ],
    namespace: Namespace = None,
    output: Annotated[Text, typer.Option("-o", "--output", help="Form.")] = Text.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_user: As = None,
    as_group: AsGroup = None,
    release_namespace: ReleaseNamespace = "gpumem-system",
    release_name: ReleaseName = "gpu-memory-operator",
) -> None:
    """Explain a pod's limit, charge and use, or why it is not there."""
    from gpumem_operator.cli import cluster, leader
    from gpumem_operator.cli import why as command
    from gpumem_operator.cli.target import misunderstood, target_of

    access = cluster.Access(kubeconfig, context, as_user, tuple(as_group or ()))
    target = target_of(workload)
    if target is None:
        _fail(misunderstood(workload))
    chosen = namespace or cluster.current_namespace(access)
    release = leader.Release(release_namespace, release_name)

    async def work(api: Any) -> None:
        await command.run(
            api, release, namespace=chosen, target=target, as_json=output is Text.JSON
        )

    _with_cluster(work, access)


def _with_cluster(work: Callable[[Any], Awaitable[None]], access: "Access") -> None:
    from gpumem_operator.cli.cluster import NoCluster, cluster
    from gpumem_operator.kube.errors import ApiError, Unreached

    async def connected() -> None:
        async with cluster(access) as api:
            await work(api)

    try:
        asyncio.run(connected())
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except Unreached as error:
        _fail(f"{error} (kubeconfig {access.where}): does the cluster run?")
    except (NoCluster, ApiError) as error:
        _fail(str(error))


def _is_json(output: Form, watch: bool) -> bool:
    if watch and output is Form.JSON:
        _fail("--watch shows tables: leave it out with -o json")
    return output is Form.JSON


def _fail(text: str) -> NoReturn:
    remark(f"error: {text}")
    raise typer.Exit(2)
