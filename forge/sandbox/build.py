"""Runs the builder from the host's side: untrusted sources in, artifact bytes out, in a separate sandbox."""

from dataclasses import dataclass

from forge.domain.verdict import Reason
from forge.sandbox.limits import Limits
from forge.sandbox.one_shot import run_one_shot
from forge.sandbox.reply import ArtifactFile, Refused, parse_artifact
from forge.sandbox.stage import BUILD, Stage

ARTIFACT_LIMIT_BYTES = 128 * 2**20
"""Size of all built files in bytes, at most. Chosen; the host reads and stores every byte, so a larger limit costs
its disk and time."""


@dataclass(frozen=True)
class Built:
    """The builder's result."""

    files: tuple[ArtifactFile, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The host's orders to a language's builder."""

    source: str | None
    """Text to compile; None if the build only imports kernel.py."""
    flags: tuple[str, ...] = ()
    """Compiler flags: the candidate's, then the host's."""
    code: str = ""
    """Name of the GPU code to make ("sm_90a"), for languages that make any."""


def build(stage: Stage, recipe: Recipe, *, limits: Limits, threads: int) -> Built | Refused:
    """Run the language's build on a stage; the refusal's log has the compiler's messages."""
    body = {
        "candidate_directory": stage.candidate_directory,
        "scratch_directory": stage.scratch_directory,
        "source": recipe.source,
        "flags": list(recipe.flags),
        "code": recipe.code,
    }
    try:
        handed_over = run_one_shot(
            stage, BUILD, body, what="the build", most_bytes=ARTIFACT_LIMIT_BYTES, limits=limits, threads=threads
        )
        return handed_over if isinstance(handed_over, Refused) else Built(parse_artifact(handed_over))
    except ValueError as error:
        return Refused(Reason(code="COMPILE_ERROR", message=str(error)))
