"""Screens a session's drafts on this machine, and describes the trials in an event that no decision reads."""

import time
from dataclasses import dataclass

from forge.app.machine.chosen_executor import executor_of
from forge.app.sessions.model_exchange import NS_PER_MS
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.domain.authoring import Missed, Screen
from forge.domain.budget import Amounts
from forge.domain.digest import sha256
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.events import TrialsScreened
from forge.events.session import BudgetReserved
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.pipeline.job import screening_job
from forge.pipeline.sessions.ground import ScreenOutcome


@dataclass(frozen=True)
class DraftScreener:
    """Screens drafts for the sessions of one workspace."""

    workspace: Workspace
    progress: Progress

    def screen(self, reserved: BudgetReserved, step: Screen, task_id: str) -> ScreenOutcome:
        """Screen a step's drafts. A machine that can't do so gives `Missed`, which says nothing about them."""
        began = time.monotonic_ns()
        try:
            require_lab()
            task = find_task(self.workspace, task_id).task
            executor = executor_of(self.workspace)
            site = executor.site(self.workspace.policy)
            job = screening_job(task, self.workspace.policy, site)
            found = executor.screen_drafts(job, step, rng=self.workspace.rng, progress=self.progress)
        except EnvironmentUnfit as error:
            reason = Reason(code="INFRASTRUCTURE", message=error.message)
            return ScreenOutcome(entry=Missed(step="screen", reason=reason), used=_used(began))
        self.workspace.record_environment(site.environment, run_id=reserved.session_id)
        self.workspace.blobs.put(found.samples)
        used = _used(began)
        event = TrialsScreened(
            session_id=reserved.session_id,
            task_id=task_id,
            step=reserved.round,
            screened=found.screened,
            samples_sha256=sha256(found.samples),
            env_sha256=site.environment.env_sha256,
            elapsed_s=used.wall_ms / 1000,
        )
        return ScreenOutcome(entry=found.screened, used=used, events=(event,))


def _used(began_ns: int) -> Amounts:
    spent_ms = (time.monotonic_ns() - began_ns) // NS_PER_MS
    return Amounts(wall_ms=spent_ms, device_ms=spent_ms)
