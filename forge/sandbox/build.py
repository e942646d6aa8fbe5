"""The builder, from the host's side: untrusted sources in, artifact bytes out, in a sandbox of its own."""

from dataclasses import dataclass

from forge.domain.verdict import Reason
from forge.sandbox.limits import Limits
from forge.sandbox.one_shot import run_errand
from forge.sandbox.reply import ArtifactFile, Refused, parse_artifact
from forge.sandbox.stage import BUILD, Stage

ARTIFACT_LIMIT_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Built:
    """What the builder made."""

    files: tuple[ArtifactFile, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a language's builder is told."""

    source: str | None
    """The text to compile; None where importing kernel.py is all of the build."""
    flags: tuple[str, ...] = ()
    """For the compiler: the candidate's, then the host's."""
    code: str = ""
    """The GPU code to make ("sm_90a"), in a language that makes any."""


def build(stage: Stage, recipe: Recipe, *, limits: Limits, threads: int) -> Built | Refused:
    """Run the language's build on a stage; a compiler's complaint comes back in the refusal's log."""
    body = {
        "candidate_directory": stage.candidate_directory,
        "scratch_directory": stage.scratch_directory,
        "source": recipe.source,
        "flags": list(recipe.flags),
        "code": recipe.code,
    }
    try:
        taken = run_errand(
            stage, BUILD, body, what="the build", most_bytes=ARTIFACT_LIMIT_BYTES, limits=limits, threads=threads
        )
        return taken if isinstance(taken, Refused) else Built(parse_artifact(taken))
    except ValueError as error:
        return Refused(Reason(code="COMPILE_ERROR", message=str(error)))
