"""A cluster of two nodes on this machine, which asks for a token. Without Ray nothing here is collected."""

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest

from forge.app.work.cluster import places_of
from tests.cli.conftest import empty_workspace, home, open_workspace

__all__ = ["empty_workspace", "home", "open_workspace"]

collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*.py"]
# Ray reads these when it is first imported
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
QUICK_LOSS = {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 3}
"""Settings with which Ray counts a killed node as lost within seconds; by default that takes three times as long."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """Two nodes of one processor each, for all tests of a process. A test that kills a node adds one of its own."""
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK_LOSS}
    made = Cluster(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def places(cluster: Any) -> list[str]:
    """The two nodes' places. They are listed once: each listing lets a process without a token try the cluster."""
    return places_of(cluster.address, plain_network=True)
