"""Two nodes of one machine judge: what they answer, what happens if one is lost, and who may be asked at all."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from forge.app.work.cluster import cluster_report
from forge.domain.policy import Policy
from forge.domain.verdict import Accepted, Rejected, Verdict
from forge.errors import EnvironmentUnfit, RemoteFailed, UsageError
from forge.executor import ray as nodes
from forge.executor.ray import Node, RayAddress, RayConnection, nodes_of, parse_address, require_protected
from forge.executor.remote.executor import RemoteExecutor
from forge.lab.judge_version import gates_sha256
from forge.sandbox import calling_off
from forge.sandbox.calling_off import CalledOff
from tests.candidates import job_for
from tests.cli.asking import HONEST, ask, copied, history, ledger_stands
from tests.cluster.answers import Garbage, OnlyWalls, OnlyWallsAndShortSeries, Silent, Verbose
from tests.docs.markdown import blocks
from tests.docs.test_two_machines import PAGE
from tests.evil.described import CANDIDATES, described
from tests.evil.test_evil import job_of
from tests.executor.test_remote import processes_below

WRONG = "def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n"
ENDLESS = "def fused_add_rmsnorm(x, residual, weight, eps):\n    while True:\n        pass\n"
LIMIT_S = 3000.0
"""Limit of an endless candidate's own work, in seconds: far more than a lost node takes to be noticed."""


def test_every_node_is_a_place_that_says_what_it_is(cluster: Any) -> None:
    found = cluster_report(cluster.address, Policy(), plain_network=True)
    assert [one["usable"] for one in found] == [True, True], found
    assert len({one["place"] for one in found}) == 2


def test_a_node_judges_with_its_own_wall(places: list[str]) -> None:
    connection = RayConnection(parse_address(places[0]))
    executor = RemoteExecutor(connection)
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    steps: list[str] = []
    examined = executor.examine(job_for(WRONG, language="torch"), progress=steps.append)
    assert isinstance(examined.verdict, Rejected)
    assert "sources" in steps
    connection.close()


@pytest.mark.parametrize(
    ("worker", "patience_s", "said"),
    [
        (Garbage, nodes.SILENT_S, "no message of Forge"),
        (Verbose, nodes.SILENT_S, "sent hello: expected an answer"),
        (Silent, 1.0, "sent nothing for"),
    ],
)
def test_what_is_no_answer_is_one_clear_error(
    places: list[str], worker: type, patience_s: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = parse_address(places[0])
    other = RayConnection(place, worker=worker)
    other.hello()
    monkeypatch.setattr(nodes, "SILENT_S", patience_s)
    with pytest.raises(RemoteFailed, match=said):
        RemoteExecutor(other).site(Policy())


def test_a_gpu_that_a_node_does_not_have_is_one_clear_error(places: list[str]) -> None:
    place = parse_address(f"{places[0]}/0")
    with pytest.raises(RemoteFailed, match=r"started no worker: .*this node has no GPU '0'"):
        RemoteExecutor(RayConnection(place)).site(Policy())


def test_a_node_that_is_lost_gives_no_verdict(cluster: Any) -> None:
    import ray

    lost = cluster.add_node(num_cpus=1)
    place = RayAddress(cluster.address, lost.node_id, None)
    executor = RemoteExecutor(RayConnection(place))
    executor.site(Policy())

    def progress(step: str) -> None:
        if step == "signature":  # the first gate, which calls it
            cluster.remove_node(lost, allow_graceful=False)

    began = time.monotonic()
    with pytest.raises(RemoteFailed, match=r"was lost|sent nothing"):
        executor.examine(job_for(ENDLESS, language="torch", limit_s=LIMIT_S), progress=progress)
    assert time.monotonic() - began < LIMIT_S, "the loss ended it, and not the limit of the candidate's own work"
    until = time.monotonic() + 60
    while lost.node_id in {one["NodeID"] for one in ray.nodes() if one["Alive"]}:
        assert time.monotonic() < until, "Ray counts a node as lost after a few missed heartbeats"
        time.sleep(1)
    with pytest.raises(RemoteFailed):
        executor.site(Policy())


def test_a_job_that_is_called_off_ends_on_its_node_and_the_next_gets_a_new_worker(places: list[str]) -> None:
    connection = RayConnection(parse_address(places[0]))
    executor, in_candidate = RemoteExecutor(connection), threading.Event()
    executor.site(Policy())
    first = connection._actor

    def call_off() -> None:
        in_candidate.wait()
        calling_off.call_off()

    calling = threading.Thread(target=call_off)
    calling.start()
    try:
        with pytest.raises(CalledOff):
            executor.examine(
                job_for(ENDLESS, language="torch"),
                progress=lambda step: in_candidate.set() if step == "signature" else None,
            )
    finally:
        in_candidate.set()
        calling.join()
        calling_off.resume()
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    assert connection._actor is not first
    connection.close()


@pytest.mark.usefixtures("walls")
def test_hostile_candidates_are_refused_on_every_node(places: list[str]) -> None:
    hostile = [path for path in CANDIDATES if (said := described(path)).gate and said.language == "torch"]
    chosen = hostile[:: len(hostile) // 5]

    def verdicts(place: str, paths: list[Path]) -> list[Verdict]:
        executor = RemoteExecutor(RayConnection(parse_address(place), worker=OnlyWalls))
        executor.site(Policy())
        return [executor.examine(job_of(path), progress=lambda _: None).verdict for path in paths]

    with ThreadPoolExecutor() as both:
        shares = [chosen[number :: len(places)] for number in range(len(places))]
        answers = list(both.map(verdicts, places, shares))
    for path, verdict in zip(chain(*shares), chain(*answers), strict=True):
        assert isinstance(verdict, Rejected), path
        assert verdict.reason.code in described(path).codes, path


@pytest.mark.usefixtures("walls")
def test_a_candidate_reaches_nothing_of_its_worker(cluster: Any, places: list[str]) -> None:
    """Outside the wall the same program finds the cluster, so it isn't blind."""
    text = (Path(__file__).parent / "reaches_for_its_worker.py").read_text()
    text = text.replace("PORT = 0", f"PORT = {cluster.address.rpartition(':')[2]}")
    kernel = (HONEST / "kernel.py").read_text().replace("def fused_add_rmsnorm(", "def right(")
    outside = subprocess.run(
        [sys.executable, "-c", f"{text}\nprint(*found(), sep='\\n')"], capture_output=True, text=True, check=True
    )
    assert {"variables", "session", "a port of the cluster", "other processes"} <= set(outside.stdout.splitlines())
    place = parse_address(places[0])
    executor = RemoteExecutor(RayConnection(place, worker=OnlyWallsAndShortSeries))
    executor.site(Policy())
    examined = executor.examine(job_for(f"{kernel}\n\n{text}", language="cpp"), progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)


def test_a_stranger_without_a_token_is_not_taken_in(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes_there = [Node(id="a", host="192.0.2.7", gpus=0)]
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with pytest.raises(EnvironmentUnfit, match="isn't encrypted"):
        require_protected(cluster.address, nodes_there, plain_network=False)


OPEN_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
print(made.address, flush=True)
sys.stdin.readline()
made.shutdown()
"""


def test_a_cluster_that_takes_in_anyone_is_refused() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    asked = [sys.executable, "-c", OPEN_CLUSTER]
    pipe = subprocess.PIPE
    environment["RAY_AUTH_MODE"] = "disabled"
    with subprocess.Popen(
        asked, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as at:
        assert at.stdin is not None
        assert at.stdout is not None
        lines = (line.strip() for line in at.stdout)
        address = next(line for line in lines if ":" in line and " " not in line)
        with pytest.raises(EnvironmentUnfit, match="asks for no token"):
            require_protected(address, [Node(id="a", host="192.0.2.7", gpus=0)], plain_network=True)
        at.stdin.write("end\n")
        at.stdin.flush()


def test_a_cluster_of_which_nothing_is_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "CONNECT_S", 3.0)
    with pytest.raises(
        RemoteFailed, match=r"can't find out whether the Ray cluster at '127.0.0.1:9' asks for a token"
    ):
        require_protected("127.0.0.1:9", [Node(id="a", host="192.0.2.7", gpus=0)], plain_network=True)


@pytest.mark.usefixtures("places")
def test_a_process_that_is_connected_to_one_cluster_asks_no_other() -> None:
    with pytest.raises(UsageError, match=r"connected to the Ray cluster at .*: expected that one"):
        nodes_of("192.0.2.7:6379", plain_network=True)


def test_a_cluster_on_loopback_alone_needs_no_token() -> None:
    require_protected("127.0.0.1:1", [Node(id="a", host="127.0.0.1", gpus=0)], plain_network=False)


def _refused_after_its_build(folder: Path) -> Path:
    """A candidate that is compiled and then refused."""
    shutil.copytree(HONEST, folder)
    kernel = folder / "kernel.py"
    kernel.write_text(f"{kernel.read_text()}\n\nraise ValueError({folder.name!r})\n")
    return folder


def _compiles_below(node: Any) -> bool:
    """Whether a job of this node compiles now."""
    below = processes_below(node.all_processes["raylet"][0].process.pid)
    named = [Path(f"/proc/{one}/comm") for one in below]
    with suppress(OSError):
        return any(one.read_text().strip() == "cc1plus" for one in named)
    return False


def test_a_pipeline_whose_node_is_killed_decides_every_folder_once_and_each_node_is_named(
    cluster: Any, home: Path, tmp_path: Path
) -> None:
    lost = cluster.add_node(num_cpus=1)
    folders = [_refused_after_its_build(tmp_path / name) for name in "abcdef"]
    ended, in_a_job = threading.Event(), threading.Event()

    def kill() -> None:
        while not ended.wait(0.05):
            if _compiles_below(lost):
                in_a_job.set()
                cluster.remove_node(lost, allow_graceful=False)
                return

    killing = threading.Thread(target=kill)
    killing.start()
    asked = ("pipeline", "last", *folders, "--ray", cluster.address, "--plain-network", "--home", home, "--json")
    try:
        told = ask(*asked)
    finally:
        ended.set()
        killing.join()
    assert in_a_job.is_set(), "the node was killed while it had a job"
    assert "folders" in told.document, told
    decided = told.document["folders"]
    assert [one["verdict"] for one in decided] == ["rejected"] * len(folders), told
    types = [one["type"] for one in history(home)]
    assert types.count("CandidateRejected") == len(folders)
    assert types.count("VerificationErrored") >= 1, "the lost job left no verdict, and was asked for again"
    assert "pipeline: 6 of 6 decided, " in told.err

    said_by = Counter(one["phases"]["verify"]["node"] for one in decided)
    assert set(said_by) <= {node.node_id[:12] for node in cluster.list_all_nodes()}
    rejections = ("audit", "rejections", "--home", home, "--json")
    for node, number in said_by.items():
        assert ask(*rejections, "--without-node", node).document["refused"] == len(folders) - number

    again = ask(*asked[:-1], "--resume", "--json")
    assert [one["verdict"] for one in again.document["folders"]] == ["rejected"] * len(folders)
    assert [one["type"] for one in history(home)] == types, "nothing was judged twice"
    assert ledger_stands(home)


@pytest.mark.parametrize(
    "address", ["ray:", "ray://", "ray://host:1", "ray://host:1/", "ray://host:1/a/b/c", "x://a/b"]
)
def test_what_is_no_place_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="expected ray://"):
        parse_address(address)


@pytest.mark.usefixtures("places")
def test_the_commands_for_a_cluster_of_the_page_on_two_machines_run(cluster: Any, home: Path, tmp_path: Path) -> None:
    shown = [block.text for block in blocks("sh") if block.page == PAGE and "forge doctor --ray" in block.text]
    doctor, pipeline = (shlex.split(line)[1:] for line in shown[0].splitlines())
    (tmp_path / "candidates").mkdir()
    refused = copied(HONEST, tmp_path / "candidates" / "one")
    (refused / "kernel.py").write_text("import os\n")

    def here(words: list[str]) -> list[str]:
        stand_ins = {"10.0.0.1:6379": cluster.address, "candidates/*": str(refused)}
        return [stand_ins.get(word, word) for word in words]

    told = ask(*here(doctor), "--home", home, "--json").document
    assert "ray" in json.dumps(told)
    assert ask(*here(pipeline), "--home", home, "--json").document["verdict"] == "rejected"
