"""Opens a short search on the processor, for the demonstration: a template in C++, few settings, one finalist."""

from forge.app.demo import ON_A_CPU, examples_folder
from forge.app.sessions.authors import AuthorSource, make_author, read_source
from forge.app.sessions.opening import SessionRequest, open_session
from forge.app.tasks import create_task
from forge.app.workspace import Workspace
from forge.domain.authoring import Author
from forge.domain.budget import Amounts
from forge.pipeline.create import TaskRequest

TEMPLATE = "templates/cpp_fused_add_rmsnorm"
OPTIONS = {"batch": 7, "most_trials": 7, "finalists": 1}
"""Options of the search: one batch, whose processes are all alive at once, and one candidate for all phases."""
SEED = 1
BUDGET = Amounts(wall_ms=3_600_000, device_ms=3_600_000, candidates=1)


def demo_source() -> AuthorSource:
    """Return what the demonstration's author is made from."""
    return read_source("search", examples_folder() / TEMPLATE, OPTIONS)


def open_search(workspace: Workspace) -> tuple[str, Author]:
    """Create the task and open the session; return its id and its author."""
    story, source = ON_A_CPU, demo_source()
    request = TaskRequest(op=story.op, language=story.language, gpu=story.gpu, dtype=story.dtype, shape=story.shape)
    task_id = create_task(workspace, request).task_id
    author = make_author(source)
    asked = SessionRequest(task=task_id, seed=SEED, budget=BUDGET)
    return open_session(workspace, author, asked, source=source), author
