"""Says which command continues a run; imports little, so that lists of runs stay quick."""

from forge.domain.another_run import IN_ANOTHER_RUN

NEXT_COMMAND = {
    "planned": "forge prompt {run}",
    "prompt_ready": "forge submit {run} DIR",
    "candidate_ready": "forge verify {run}",
    "verified": "forge bench {run}",
    "benchmarked": "forge promote {run}",
}
"""State of a run -> the command that comes next; a run in any other state has ended."""


def next_command(run_id: str, task_id: str, *, state: str, failed: str) -> str | None:
    """Return the command that continues a run; None at its end. `failed` is the reason of its failed benchmark."""
    if state == "verified" and failed.endswith(IN_ANOTHER_RUN):
        return f"forge run open {task_id}"
    following = NEXT_COMMAND.get(state)
    return following.format(run=run_id) if following else None
