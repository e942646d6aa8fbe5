"""The real Codex CLI as a session's author: pointed at a scripted server on loopback, in the real namespace.

`make test-agents-real` installs it where Node is, and runs this file.
"""

import os
import shutil
from pathlib import Path

import pytest

from forge.app.sessions.choice import AuthorChoice, answering, source_of
from forge.app.sessions.coding_agent import CodingAgent
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.authors.kinds import make_author
from forge.domain.budget import Amounts
from forge.events import CandidateRejected
from tests.app.model_server import Call, Say, serving
from tests.cli.asking import ledger_stands

CODEX = os.environ.get("FORGE_TEST_CODEX", "")
"""Path of the installed command; `make test-agents-real` sets it."""
ROOM = Amounts(wall_ms=10**8, device_ms=10**8, candidates=9)
KEY = "scripted-key-not-to-be-recorded"
SUBMIT = (
    "cp starting/* candidate/; echo not json > candidate/metadata.json;"
    " forge submit candidate --hypothesis 'what Codex says'; forge wait; ls /; forge promote; true"
)


@pytest.mark.skipif(not CODEX, reason="the Codex CLI isn't installed: make test-agents-real, where Node is")
@pytest.mark.usefixtures("walls")
def test_codex_reads_the_instructions_submits_through_the_socket_and_is_told_the_verdict(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    monkeypatch.setenv("PATH", f"{Path(CODEX).parent}:{os.environ['PATH']}")
    with serving(Call(SUBMIT), Say("I am content.")) as server, Workspace.open(home) as workspace:
        provider = f'{{name="scripted",base_url="{server.url}/v1",wire_api="responses",env_key="SCRIPTED_KEY"}}'
        command = (
            "codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
            f" -c 'model_providers.scripted={provider}' -c model_provider=scripted -c model=gpt-5"
            " 'Read AGENTS.md and begin.'"
        )
        task = workspace.find_run("last").task_id
        allow = (str(Path(CODEX).parents[2]),)
        choice = AuthorChoice(kind="command", agent_cmd=command, allow=allow, allow_env=("SCRIPTED_KEY",))
        source = source_of(workspace, task, choice)
        author, agent = make_author(source), answering(workspace, source, None)
        assert isinstance(agent, CodingAgent)
        session_id = open_session(workspace, author, SessionRequest(task=task, seed=1, budget=ROOM), source=source)
        try:
            state = work_off(workspace, session_id, author, Means(model=agent))
        finally:
            agent.close()
        assert state.closed is not None
        assert state.closed.event.detail.startswith("nothing_left: the agent ended with status 0"), state.closed
        (refused,) = workspace.ledger.read(types=(CandidateRejected.TYPE,))
        assert refused.actor in ("agent:command", "system:gate")
        assert "AGENTS.md" in str(server.requests[0][2]), "Codex was given the instructions"
        answered = str(server.requests[1][2]["input"])
        assert "BAD_SUBMISSION" in answered, "the feedback reached it"
        assert "expected submit or wait" in answered, "there is no other verb"
        assert replay_session(workspace, session_id, author).divergences == ()
    assert shutil.which("codex") is not None
    assert ledger_stands(home)
    assert not any(KEY.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())
