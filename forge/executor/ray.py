"""A connection to one node of a Ray cluster, and the list of a cluster's nodes.

Ray carries bytes and nothing else: the node runs this module's installed class by name, with calls and answers of
`forge.executor.remote`. Ray repeats nothing: a job that is lost has no answer, and its run asks for it again.
"""

import io
import ipaddress
import logging
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from forge.errors import EnvironmentUnfit, RemoteFailed, UsageError
from forge.executor.local import LocalExecutor
from forge.executor.remote.answering import Answering, hello, progress_frame, signs_of_life
from forge.executor.remote.frames import Frame, last_frame, packed, read_frame
from forge.executor.remote.ssh import SILENT_S
from forge.lab.job import Progress
from forge.platforms.cuda import choose, devices

SCHEME = "ray"
CONNECT_S = 30.0
"""Time in seconds in which a cluster must answer. Chosen; a longer one delays the error for one that is down."""
ANSWER_S = 10.0
"""Time in which a program at a cluster's address must take a plain connection, in seconds. Chosen; a connection
across the world takes under a second."""
_CONNECTED_AS: list[str] = []
"""Address by which this process connected; Ray may name the same cluster by another address of its head node."""
REFUSED = 3
"""Exit status of `STRANGER` if the cluster asks it for a token. Python itself ends with 0, 1 or 2."""
STRANGER = f"""
import sys
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=10)
except AuthenticationError:
    sys.exit({REFUSED})
"""
"""Program that asks a cluster for its nodes without a token. `ray.init` would ask again for 20 s if it is refused."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node of a cluster, as Ray describes it."""

    id: str
    host: str
    gpus: int


@dataclass(frozen=True)
class RayAddress:
    """A place in a cluster: `ray://host:port/NODE[/GPU]`."""

    cluster: str
    node: str
    device: str | None

    def __str__(self) -> str:
        return f"{SCHEME}://{self.cluster}/{self.node}" + (f"/{self.device}" if self.device is not None else "")


def parse_address(address: str) -> RayAddress:
    """Return the place that an address names; raise UsageError if it names none."""
    parts = urlsplit(address)
    path = parts.path.strip("/").split("/")
    if parts.scheme != SCHEME or not parts.netloc or not path[0] or len(path) > 2:
        raise UsageError(
            f"bad address {address!r:.200}: expected ray://host:port/NODE, or with a GPU ray://host:port/NODE/0",
            hint="forge doctor --ray HOST:PORT",
        )
    return RayAddress(parts.netloc, path[0], path[1] if len(path) == 2 else None)


def nodes_of(cluster: str, *, plain_network: bool) -> list[Node]:
    """Return the nodes that are alive; raise EnvironmentUnfit for a cluster that isn't protected."""
    ray = _connected(cluster)
    alive = [one for one in ray.nodes() if one["Alive"]]
    found = [
        Node(id=one["NodeID"], host=one["NodeManagerAddress"], gpus=int(one["Resources"].get("GPU", 0)))
        for one in alive
    ]
    require_protected(cluster, found, plain_network=plain_network)
    return sorted(found, key=lambda one: (one.host, one.id))


def require_protected(cluster: str, nodes: list[Node], *, plain_network: bool) -> None:
    """Raise EnvironmentUnfit unless a cluster asks for a token and encrypts, or all of it is on this machine alone.

    A program that may submit to a cluster may run anything on its nodes.
    """
    if all(_is_loopback(one.host) for one in nodes):
        return
    if os.environ.get("RAY_AUTH_MODE") != "token" or _takes_in_anyone(cluster):
        raise EnvironmentUnfit(
            f"the Ray cluster at {cluster} asks for no token, so any program that reaches it may run anything on it: "
            "expected RAY_AUTH_MODE=token on every node and here",
            hint="ray get-auth-token --generate",
        )
    if os.environ.get("RAY_USE_TLS") != "1" and not plain_network:
        raise EnvironmentUnfit(
            f"the connection to {cluster} isn't encrypted: expected RAY_USE_TLS=1, or a private network",
            hint="--plain-network",
        )


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _takes_in_anyone(cluster: str) -> bool:
    """Return whether a cluster takes in a program without a token; raise RemoteFailed if that can't be found out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    asked = [sys.executable, "-c", STRANGER, cluster]
    try:
        done = subprocess.run(
            asked,
            env={**environment, "RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=CONNECT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _untold(cluster, f"no answer within {CONNECT_S:.0f} s") from error
    if done.returncode not in (0, REFUSED):
        raise _untold(cluster, (done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.returncode == 0


def _untold(cluster: str, why: str) -> RemoteFailed:
    return RemoteFailed(
        f"can't find out whether the Ray cluster at {cluster!r:.100} asks for a token: {why:.300}",
        hint="ray status; this machine must be one of the cluster's nodes",
    )


def require_answer(cluster: str) -> None:
    """Raise RemoteFailed unless a program listens at a cluster's address. Ray itself would try for minutes."""
    host, _, port = cluster.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise RemoteFailed(
            f"no Ray cluster answers at {cluster!r:.100} ({error}): expected HOST:PORT of its head node",
            hint="ray status; this machine must be one of the cluster's nodes",
        ) from error


def _connected(cluster: str) -> Any:  # Any: Ray's package has no types that mypy reads
    """Connect this process to a cluster, once; raise EnvironmentUnfit without the package, RemoteFailed otherwise."""
    try:
        import ray
    except ImportError as error:
        raise EnvironmentUnfit(
            "Ray can't be imported: expected the extra `ray`", hint="pip install 'tensorpath-forge[ray]'"
        ) from error
    if ray.is_initialized():
        if cluster not in _CONNECTED_AS:
            _require_same(cluster, str(ray.get_runtime_context().gcs_address))
        return ray
    require_answer(cluster)
    _keep_off_stdout()
    try:
        ray.init(address=cluster, log_to_driver=False, logging_level=logging.CRITICAL, namespace="forge")
    except _faults(ray) as error:
        raise RemoteFailed(
            f"no Ray cluster answers at {cluster!r:.100}: {str(error).strip().splitlines()[0]:.200}",
            hint="ray status; this machine must be one of the cluster's nodes",
        ) from error
    _CONNECTED_AS[:] = [cluster]
    return ray


def _keep_off_stdout() -> None:
    """Let Ray print nothing about a lost node: it would stand on stdout, among the answers of a command.

    Ray has no setting for that; its thread that listens for errors prints by this function alone.
    """
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _require_same(cluster: str, connected: str) -> None:
    """Raise UsageError if this process is connected to another cluster than the one that is asked for."""
    if cluster == connected:
        return
    try:
        host, _, port = cluster.rpartition(":")
        same = port == connected.rpartition(":")[2] and socket.gethostbyname(host) == connected.rpartition(":")[0]
    except OSError:
        same = False
    if not same:
        raise UsageError(
            f"already connected to the Ray cluster at {connected}, not at {cluster!r:.100}: expected the "
            "same cluster in this process",
            hint="start another command for the other cluster",
        )


class NodeWorker:
    """Answers calls on a node. Ray starts it there by its name, in a process of its own."""

    def __init__(self, device: str | None) -> None:
        found = None if device is None else choose(devices(), device)
        if device is not None and found is None:
            raise EnvironmentUnfit(f"this node has no GPU {device!r}: expected one of {[d.uuid for d in devices()]}")
        os.environ["CUDA_VISIBLE_DEVICES"] = found.uuid if found else ""
        self._answering = Answering(LocalExecutor(Path(tempfile.gettempdir()) / "forge-measuring.lock", device=found))

    def hello(self) -> bytes:
        """Return the greeting with the node's version of Forge and of the protocol."""
        return hello().payload

    def answer(self, call: bytes) -> Iterator[bytes]:
        """Yield messages: progress and signs of life, and at the end the answer."""
        sent: queue.Queue[Frame] = queue.Queue()

        def run() -> None:
            with signs_of_life(sent.put):
                reply = self._answering.answer(call, lambda step: sent.put(progress_frame(step)))
            sent.put(reply)

        threading.Thread(target=run, daemon=True).start()
        while True:
            frame = sent.get()
            yield packed(frame)
            if frame.kind in ("answer", "refusal"):
                return


class RayConnection:
    """A connection to the Forge of one node."""

    def __init__(self, address: RayAddress, *, worker: type = NodeWorker) -> None:
        self.name, self.node = str(address), address.node
        self._address = address
        self._worker_class = worker
        self._ray: Any = None
        self._actor: Any = None
        self._greeting = b""

    def hello(self) -> bytes:
        """Start a worker on the node unless there is one, and return its greeting."""
        if self._actor is None:
            self._greeting = self._started()
        return self._greeting

    def ask(self, call: bytes, *, progress: Progress) -> Frame:
        """Send a call and return the answer or the refusal; raise RemoteFailed if the node is lost."""
        try:
            messages = self._actor.answer.options(num_returns="streaming").remote(call)
            return last_frame(lambda: self._next(messages), self.name, progress)
        except BaseException:
            self.close()
            raise

    def end(self) -> None:
        """End the worker from another thread; the call that waits for it finds it lost."""
        self._kill(self._actor)

    def close(self) -> None:
        """End the worker; what is at work there ends with it."""
        actor, self._actor = self._actor, None
        self._kill(actor)

    def _kill(self, actor: Any) -> None:
        if actor is not None and self._ray.is_initialized():
            with suppress(*_faults(self._ray)):  # the node may be gone
                self._ray.kill(actor)

    def _started(self) -> bytes:
        self._ray = _connected(self._address.cluster)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node_id=self._address.node, soft=False)
        worker = self._ray.remote(max_restarts=0, max_task_retries=0, num_cpus=0)(self._worker_class)
        try:
            self._actor = worker.options(scheduling_strategy=here).remote(self._address.device)
            greeting: bytes = self._ray.get(self._actor.hello.remote(), timeout=SILENT_S)
        except _faults(self._ray) as error:
            self.close()
            raised = (str(error).strip().splitlines() or [""])[-1]  # what the worker itself raised there
            raise RemoteFailed(
                f"{self.name} started no worker: {_first_line(error)} {raised:.300}",
                hint="forge doctor --ray HOST:PORT",
            ) from error
        return greeting

    def _next(self, messages: Any) -> Frame:
        try:
            ready, _ = self._ray.wait([messages], timeout=SILENT_S)
            if not ready:
                raise RemoteFailed(f"{self.name} sent nothing for {SILENT_S:.0f} s: expected a sign of life")
            message = self._ray.get(next(messages))
        except RemoteFailed:
            raise
        except StopIteration as error:
            raise RemoteFailed(f"{self.name} ended: expected an answer to the job; see the node's log") from error
        except _faults(self._ray) as error:
            raise RemoteFailed(
                f"the node of {self.name} was lost ({_first_line(error)}): run the command again"
            ) from error
        frame = read_frame(io.BytesIO(message).read) if isinstance(message, bytes) else None
        if frame is None:
            raise RemoteFailed(f"{self.name} sent {type(message).__name__}: expected a message of Forge")
        return frame


def _faults(ray: Any) -> tuple[type[Exception], ...]:
    """Return what Ray raises for a cluster or a node that is gone, or was never there."""
    return (ray.exceptions.RayError, RuntimeError, ValueError, OSError, AssertionError)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]:.300}"
