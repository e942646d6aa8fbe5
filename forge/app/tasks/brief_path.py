"""Finds the copy of a run's brief."""

from pathlib import Path

from forge.ledger.runs.names import BRIEFS, OPEN_PREFIX

PROMPT_FILE = "agent_prompt.md"
"""Name of a brief in its run's folder."""


def brief_copy(runs_root: Path, run_id: str) -> Path:
    """Return the path of the copy beside the run directories."""
    return runs_root / BRIEFS / f"{run_id}.md"


def brief_path(runs_root: Path, run_id: str) -> Path:
    """Return the path of the copy, or of the file in the run's folder if there is no copy."""
    copy, sealed = brief_copy(runs_root, run_id), runs_root / run_id
    if copy.is_file():
        return copy
    return (sealed if sealed.exists() else runs_root / f"{OPEN_PREFIX}{run_id}") / PROMPT_FILE
