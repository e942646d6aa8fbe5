from typing import get_args

import pytest

from forge.errors import ActorForbidden
from forge.events import EVENT_TYPES
from forge.events.candidate import CandidateRejected
from forge.events.fact import Group
from forge.events.ledger import LedgerOpened
from forge.ledger.actors import MAY_WRITE, actor_class, require_allowed

from .making import examples

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
    assert {vars(event)["GROUP"] for event in EVENT_TYPES.values()} == set(get_args(Group))


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
