"""Lists the places of a Ray cluster where jobs can run, and what each of them can do."""

from collections.abc import Iterator

from forge.domain.policy import Policy
from forge.errors import ForgeError
from forge.executor.ray import RayAddress, RayConnection, nodes_of
from forge.executor.remote.answering import require_strong_enough
from forge.executor.remote.executor import RemoteExecutor


def places_of(cluster: str, *, plain_network: bool, jobs_per_node: int = 1) -> list[str]:
    """Return an address for each GPU of each node, and `jobs_per_node` times that of a node without a GPU.

    Raises EnvironmentUnfit for a cluster that isn't protected, and RemoteFailed if none answers.
    """
    found = _places(cluster, plain_network=plain_network)
    return [str(place) for place in found for _ in range(jobs_per_node if place.device is None else 1)]


def cluster_report(cluster: str, policy: Policy, *, plain_network: bool) -> list[dict[str, object]]:
    """Return for each place its GPU, versions and sandbox, and whether it may run jobs; if not, why not."""
    return [_report(place, policy) for place in _places(cluster, plain_network=plain_network)]


def _places(cluster: str, *, plain_network: bool) -> Iterator[RayAddress]:
    for node in nodes_of(cluster, plain_network=plain_network):
        devices: list[str | None] = [str(index) for index in range(node.gpus)]
        yield from (RayAddress(cluster, node.id, device) for device in devices or [None])


def _report(place: RayAddress, policy: Policy) -> dict[str, object]:
    connection = RayConnection(place)
    told: dict[str, object] = {"place": str(place)}
    try:
        site = RemoteExecutor(connection).site(policy)
        require_strong_enough(site.isolation.level, policy.minimum_isolation)
    except ForgeError as error:
        return told | {"usable": False, "why_not": error.message}
    finally:
        connection.close()
    environment = site.environment
    return told | {
        "usable": True,
        "why_not": None,
        "gpu": environment.gpu.slug if environment.gpu else None,
        "forge": environment.forge_version,
        "torch": environment.torch,
        "compiler": environment.compiler,
        "isolation": site.isolation.level,
        "node": environment.node,
        "host_sha256": environment.host_sha256,
    }
