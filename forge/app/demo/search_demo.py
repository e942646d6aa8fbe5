"""Opens a short search on the processor, for the demonstration: a template in C++, few settings, one finalist."""

from forge.app.demo.demo import ON_A_CPU, examples_folder
from forge.app.sessions.author_folders import read_source
from forge.app.sessions.opening import SessionRequest, open_session
from forge.app.tasks.create import create_task
from forge.app.workspace import Workspace
from forge.authors.kinds import AuthorSource, make_author
from forge.domain.authoring import Author
from forge.domain.budget import Amounts
from forge.domain.session import SessionTerms
from forge.pipeline.create import TaskRequest

TEMPLATE = "templates/cpp_fused_add_rmsnorm"
"""Folder of the template that the demo searches."""
OPTIONS = {"batch": 4, "most_trials": 4, "finalists": 1}
"""Options of the search: one batch, whose processes are all alive at once, and one finalist. The budget is for one
candidate: the finalist, or the template's own setting if none is faster."""
POLICY = """\
# The demonstration measures less than a new workspace does, so that it ends within a minute on a quiet machine.
# It has one baseline, one regime, fewer pairs and rounds, a control that may be less sure, and no second measurement.
baselines = ["eager"]
regimes = ["cold"]
process_pairs = 4
rounds = 6
control_half_width = 0.15
confirmation = false
"""
"""Policy of the demonstration's workspace, as `policy.toml`."""
TERMS = SessionTerms(repeats=1)
"""Terms of the demonstration's session: on a noisy machine it measures twice, and ends without a decision."""
SEED = 1
"""Seed of the demonstration's session: each run of it proposes the same settings."""
BUDGET = Amounts(wall_ms=3_600_000, device_ms=3_600_000, candidates=1)
"""Budget of the demonstration's session: one candidate, and an hour that it doesn't reach."""


def demo_source() -> AuthorSource:
    """Return what the demonstration's author is made from."""
    return read_source("search", examples_folder() / TEMPLATE, OPTIONS)


def open_search(workspace: Workspace) -> tuple[str, Author]:
    """Create the task and open the session; return its id and its author."""
    story, source = ON_A_CPU, demo_source()
    request = TaskRequest(op=story.op, language=story.language, gpu=story.gpu, dtype=story.dtype, shape=story.shape)
    task_id = create_task(workspace, request).task_id
    author = make_author(source)
    asked = SessionRequest(task=task_id, seed=SEED, budget=BUDGET, terms=TERMS)
    return open_session(workspace, author, asked, source=source), author
