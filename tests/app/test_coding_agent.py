"""A coding agent is a real process in real namespaces: it sees its room, submits, waits, and can do no more."""

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.app.sessions.choice import AuthorChoice, answering, source_of
from forge.app.sessions.coding_agent import CodingAgent, parse_command
from forge.app.sessions.model_exchange import ModelUnanswered
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.authors.kinds import make_author
from forge.domain.authoring import Ask
from forge.domain.budget import Amounts
from forge.errors import UsageError
from forge.events import CandidateSubmitted
from tests.candidates import left_over_children
from tests.cli.asking import ledger_stands

ROOM = Amounts(wall_ms=10**8, device_ms=10**8, candidates=9)
FILES = {
    name: f"# {name}\n" for name in ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json")
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "key").write_text("secret")
    return tmp_path / "workspace"


@pytest.fixture
def agents(secret: Path, walls: object) -> Iterator[list[CodingAgent]]:
    made: list[CodingAgent] = []
    yield made
    for one in made:
        one.close()


def agent(made: list[CodingAgent], secret: Path, script: str) -> CodingAgent:
    command = parse_command(f"sh -c {shlex.quote(script)}", (), (), secret)
    made.append(CodingAgent(command=command, brief="the brief", files=FILES, hidden=(secret,)))
    return made[-1]


def ask(document: str = '{"verdict": "none"}', *, wait_ms: int = 60_000) -> Ask:
    return Ask(model="command", prompt=document, most_tokens=1, wait_ms=wait_ms)


def said(one: CodingAgent, step: Ask) -> dict[str, object]:
    found: dict[str, object] = json.loads(one.answer(step, request_id="r").text)
    return found


def test_an_agent_submits_waits_for_its_feedback_and_submits_again(secret: Path, agents: list[CodingAgent]) -> None:
    one = agent(
        agents,
        secret,
        "cp starting/* candidate/ && forge submit --hypothesis first; forge wait > told.json; "
        "cp told.json candidate/kernel.py && forge submit candidate; "
        "(forge submit 2>&1 | grep -c 'judged yet'; forge promote 2>&1 | grep -c 'expected submit or wait'); "
        "forge wait >/dev/null; echo $?",
    )
    first = said(one, ask())
    assert (first["files"], first["hypothesis"]) == (FILES, "first")
    second = said(one, ask('{"verdict": "rejected"}'))
    files = second["files"]
    assert isinstance(files, dict)
    assert json.loads(files["kernel.py"]) == {"verdict": "rejected"}
    while one._output.count(b"\n") < 4:
        time.sleep(0.02)  # the second submission is judged only after a third was tried
    ended = said(one, ask('{"verdict": "accepted"}'))["finished"]
    assert isinstance(ended, str)
    assert ended.startswith("the agent ended with status 0")
    assert ended.endswith("1 1 0'"), "one submission at a time; no other verb; an accepted one"


def test_an_agent_sees_its_room_and_no_workspace_key_run_or_other_process(
    secret: Path, agents: list[CodingAgent]
) -> None:
    one = agent(
        agents,
        secret,
        f"(cat {secret}/key; ls /work /home {secret}) 2>&1 | grep -c 'No such file'; ls /tmp;"
        " touch /run/forge/x; touch /usr/x; id -u; echo $HOME; env | grep -ci api_key; printf '\\033[31mred'; ls",
    )
    ended = said(one, ask())["finished"]
    assert isinstance(ended, str)
    assert "secret" not in ended.replace(str(secret), "")
    assert ended.partition("said last: ")[2][1:].startswith("4 touch"), (
        "four paths that aren't there, and an empty /tmp"
    )
    assert ended.count("Read-only file system") == 2
    assert " 65534 /agent 0 " in ended
    assert "\x1b" not in ended
    assert "AGENTS.md CLAUDE.md brief.md candidate feedback starting" in ended


def test_an_agent_that_hangs_with_children_is_ended_with_its_whole_tree(
    secret: Path, agents: list[CodingAgent]
) -> None:
    before = left_over_children()
    one = agent(agents, secret, "(setsid sleep 1000 &) ; trap '' TERM; while :; do sleep 1000; done")
    with pytest.raises(ModelUnanswered, match="the agent submitted nothing"):
        one.answer(ask(wait_ms=500), request_id="r")
    for _ in range(1200):
        if left_over_children() <= before:
            break
        time.sleep(0.05)
    assert left_over_children() <= before


def test_an_agent_that_prints_without_end_and_removes_its_files_is_read_and_forgotten(
    secret: Path, agents: list[CodingAgent]
) -> None:
    one = agent(agents, secret, "head -c 20000000 /dev/zero | tr '\\0' x; rm -rf /agent/*; forge submit; exit 3")
    ended = said(one, ask())["finished"]
    assert isinstance(ended, str)
    assert ended.startswith("the agent ended with status 3")
    assert "candidate/kernel.py isn't there" in ended
    assert len(ended) < 500


def test_a_session_of_an_agent_is_recorded_with_what_it_submitted(home: Path, walls: object) -> None:
    script = (
        "for text in one two; do cp starting/* candidate/; echo not python $text > candidate/metadata.json;"
        " forge submit; forge wait; done"
    )
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task_id
        choice = AuthorChoice(kind="command", agent_cmd=f"sh -c {shlex.quote(script)}")
        source = source_of(workspace, task, choice)
        author, one = make_author(source), answering(workspace, source, None)
        assert isinstance(one, CodingAgent)
        session_id = open_session(workspace, author, SessionRequest(task=task, seed=1, budget=ROOM), source=source)
        try:
            state = work_off(workspace, session_id, author, Means(model=one))
        finally:
            one.close()
        assert state.closed is not None
        assert (state.closed.event.reason, state.tree.session.settled.candidates) == ("nothing_left", 2)
        assert state.tree.session.settled.micro_dollars == 0
        refused = [recorded.actor for recorded in workspace.ledger.read(types=("CandidateRejected",))]
        submitted = [recorded.actor for recorded in workspace.ledger.read(types=(CandidateSubmitted.TYPE,))]
        assert {*refused, *submitted} <= {"agent:command", "system:gate"}
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)


def test_a_command_that_cannot_run_or_would_see_the_workspace_is_refused(secret: Path, tmp_path: Path) -> None:
    for text, why in (("", "empty"), ("sh '", "bad command"), ("no-such-agent-1", "no program 'no-such-agent-1'")):
        with pytest.raises(UsageError, match=why):
            parse_command(text, (), (), secret)
    for allow in (str(secret), str(tmp_path), "/", f"{secret}/key"):
        with pytest.raises(UsageError, match="never sees"):
            parse_command("sh", (allow,), (), secret)
    with pytest.raises(UsageError, match="no such path"):
        parse_command("sh", (f"{tmp_path}/none",), (), secret)
    with pytest.raises(UsageError, match="it isn't set"):
        parse_command("sh", (), ("NO_SUCH_VARIABLE_1",), secret)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "own").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "own").chmod(0o755)
    with pytest.raises(UsageError, match="expected --allow"):
        parse_command(str(tmp_path / "bin" / "own"), (), (), secret)
    assert parse_command(str(tmp_path / "bin" / "own"), (str(tmp_path / "bin"),), (), secret).allowed
