import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from forge.errors import ActorForbidden, LedgerCorrupt
from forge.events import EVENT_TYPES
from forge.events.candidate import CandidateRejected
from forge.events.kinds import KINDS, Group
from forge.events.ledger import LedgerOpened
from forge.ledger.actor_rights import MAY_WRITE, actor_class
from forge.ledger.actors import require_allowed
from forge.ledger.chain import sealed
from forge.ledger.statements import INSERT_EVENT

from .making import create, examples, new_id, open_ledger

AN_AUTHOR_MAY_WRITE = {
    "TaskCreated",
    "PlanAccepted",
    "PromptRendered",
    "CandidateSubmitted",
    "CandidateDuplicated",
    "ClaimRecorded",
    "LessonProposed",
    "WorkRefused",
    "WorkRequested",
    "WorkWithdrawn",
    "StepProposed",
    "WishRefused",
    "KernelDoubted",
}


def test_every_event_type_names_its_own_group() -> None:
    assert KINDS.keys() == EVENT_TYPES.keys()
    assert {kind.group for kind in KINDS.values()} == set(get_args(Group))


@pytest.mark.parametrize("actor", ["agent:model@1", "import:seed"])
@pytest.mark.parametrize("name", sorted(examples()))
def test_an_author_never_writes_what_judges_it(name: str, actor: str) -> None:
    if name in AN_AUTHOR_MAY_WRITE:
        require_allowed(actor, examples()[name])
    else:
        with pytest.raises(ActorForbidden, match=name):
            require_allowed(actor, examples()[name])


@pytest.mark.parametrize("stage", ["submit", "screen", "build", "verify"])
def test_an_agent_is_told_at_the_door_and_refused_behind_it(stage: str) -> None:
    rejected = examples()["CandidateRejected"].model_copy(update={"stage": stage})
    assert isinstance(rejected, CandidateRejected)
    if stage == "submit":
        require_allowed("agent:model", rejected)
    else:
        with pytest.raises(ActorForbidden):
            require_allowed("agent:model", rejected)


@pytest.mark.parametrize("actor", ["cli:ada@lab", "ci:nightly", "system:recovery"])
@pytest.mark.parametrize("name", sorted(examples()))
def test_people_workflows_and_forge_write_everything_but_a_persons_decision(name: str, actor: str) -> None:
    if name in (
        "HumanDecided",
        "LessonAccepted",
        "BudgetGranted",
        "TokenGranted",
        "TokenRevoked",
    ) and not actor.startswith("cli:"):
        with pytest.raises(ActorForbidden, match="cli:"):
            require_allowed(actor, examples()[name])
    else:
        require_allowed(actor, examples()[name])


@pytest.mark.parametrize(
    ("kind", "actor"),
    [
        ("BenchmarkRecorded", "agent:m"),
        ("KernelPromoted", "import:x"),
        ("TokenGranted", "ci:x"),
        ("RunSealed", "agent:m"),
    ],
)
def test_no_reader_takes_a_row_that_its_actor_may_not_write(kind: str, actor: str, tmp_path: Path) -> None:
    """Inserted past Forge, with right hashes: the database's own triggers let it in."""
    path = tmp_path / "kernel_registry.db"
    with create(path) as ledger:
        ledger.append([examples()[kind]], actor="cli:ada@lab", correlation_id="c")
        (row,) = ledger.rows(after_seq=1)
        forged = row._replace(seq=3, event_id=new_id(), stream_version=2, actor=actor, prev_hash=row.event_hash)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(INSERT_EVENT, sealed(forged))
        connection.commit()
    with open_ledger(path) as ledger:
        with pytest.raises(LedgerCorrupt, match="may not write"):
            list(ledger.read())
        with pytest.raises(LedgerCorrupt, match="may not write"):
            list(ledger.replay(after_seq=0, until_seq=3, types=EVENT_TYPES))


@pytest.mark.parametrize("kind", sorted(MAY_WRITE))
def test_only_forge_itself_opens_a_ledger(kind: str) -> None:
    opened = LedgerOpened(ledger_id="l", origin="o", forge_version="0.1.0")
    if kind == "system":
        require_allowed("system:forge", opened)
    else:
        with pytest.raises(ActorForbidden):
            require_allowed(f"{kind}:x", opened)


@pytest.mark.parametrize(
    "actor",
    [
        "",
        "ada",
        "cli",
        "cli:",
        ":ada",
        "root:ada",
        "CLI:ada",
        "cli:a\nb",
        "cli: ada",
        "agents:x",
        "cli:" + "x" * 191,
    ],
)
def test_an_actor_of_no_known_class_writes_nothing(actor: str) -> None:
    with pytest.raises(ActorForbidden, match="unknown actor"):
        actor_class(actor)
