"""Decides what a caller sees of an event: always its place in the chain, its payload by the rule of runs."""

from dataclasses import dataclass, field

from forge.app.access.tokens import Caller
from forge.app.desk.permits import may_look_into
from forge.app.desk.session_figures import may_be_told
from forge.app.desk.withheld import hidden_shapes, without_hidden
from forge.app.ledger.ledger_answers import in_envelope
from forge.app.workspace import Workspace
from forge.domain.tensors import Shape
from forge.errors import ForgeError
from forge.events import Event, Recorded, SpeedupEstimated
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunState, run_of

Data = dict[str, object]
OPEN_TO_ALL = frozenset(
    {"RunStarted", "PlanAccepted", "PromptRendered", "WorkRequested", "WorkWithdrawn", "RunSealed"}
)
"""Types of events of a run whose payload every caller may read at any time: they say nothing of its candidate."""
UNDECIDED = "withheld until the run is decided: its author and operators may read it before"
"""Text in place of the payload of an event of a run that isn't decided."""
UNDECIDED_SESSION = "withheld until what it tells of is decided: operators may read it before"
"""Text in place of the payload of an event of a session that may show the speed of an undecided run."""
DAMAGED = "withheld: the record of which shapes are held out is missing or damaged; run forge ledger verify"
"""Text in place of a payload that may name a held-out shape."""


def _told_of(recorded: Recorded[Event]) -> str | None:
    """Return the run that an event tells of; None if it tells of none. An estimate is appended beside its run."""
    if isinstance(recorded.event, SpeedupEstimated):
        return recorded.correlation_id
    return run_of(recorded.event)


@dataclass
class Teller:
    """Tells one caller of events. Each run that they belong to is looked up once."""

    workspace: Workspace
    caller: Caller
    _runs: dict[str, RunState] = field(default_factory=dict)
    _hidden: dict[str, tuple[Shape, ...]] = field(default_factory=dict)

    def told(self, recorded: Recorded[Event]) -> Data:
        """Return an event with its envelope; `withheld` says whether something in the payload isn't told."""
        payload = recorded.event.model_dump(mode="json")
        told = self._payload(recorded, payload)
        return in_envelope(recorded, told) | {"withheld": told != payload}

    def _payload(self, recorded: Recorded[Event], payload: Data) -> object:
        event, run_id = recorded.event, _told_of(recorded)
        if not may_be_told(self.workspace, self.caller, event):
            return {"session_id": payload["session_id"], "withheld": UNDECIDED_SESSION}
        if run_id is None or event.TYPE in OPEN_TO_ALL:
            return without_hidden(payload, ())
        try:
            if not may_look_into(self.caller, self._run(run_id)):
                return {"run_id": run_id, "withheld": UNDECIDED}
            return without_hidden(payload, self._held_out(run_id))
        except ForgeError:  # one event that can't be told keeps none of the others back
            return {"run_id": run_id, "withheld": DAMAGED}

    def _run(self, run_id: str) -> RunState:
        if run_id not in self._runs:
            self._runs[run_id] = run_state(self.workspace.ledger, run_id)
        return self._runs[run_id]

    def _held_out(self, run_id: str) -> tuple[Shape, ...]:
        if run_id not in self._hidden:
            self._hidden[run_id] = hidden_shapes(self.workspace, self._run(run_id))
        return self._hidden[run_id]
