"""Skills: the playbooks that briefs quote for authors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table, say
from forge.cli.skill_tables import show_skill as show_document
from forge.cli.skill_tables import show_skills

if TYPE_CHECKING:
    from forge.pipeline.skills import Skill

app = typer.Typer(help="Skills: playbooks for authors.", no_args_is_help=True, rich_markup_mode=None)
Packages = Annotated[
    Path,
    typer.Option("--packages", metavar="DIR", help="The folder whose node_modules may hold @krxgu/kernel-skills."),
]
HERE = Path()


@app.command("list")
def list_skills(packages: Packages = HERE, as_json: Json = False) -> None:
    """List every skill.

    Example: forge skill list
    """
    from forge.pipeline.skill_package import every_skill

    show_skills([described_skill(one) for one in every_skill(packages)], as_json=as_json)


@app.command("show")
def show_skill(
    skill: Annotated[str, typer.Argument(help="The skill's id.")], packages: Packages = HERE, as_json: Json = False
) -> None:
    """Print a skill's text.

    Example: forge skill show patterns.test-plan
    """
    from forge.pipeline.skill_package import every_skill
    from forge.pipeline.skills import find_skill

    found = find_skill(every_skill(packages), skill)
    show_document(described_skill(found), found.text, as_json=as_json)


@app.command("search")
def search_skills(
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    language: Annotated[str | None, typer.Option(help="Only skills for this language.", show_default=False)] = None,
    packages: Packages = HERE,
    as_json: Json = False,
) -> None:
    """Rank the skills that have any of the words, best first.

    Example: forge skill search "row reduction" --language triton
    """
    from forge.languages import find_language
    from forge.pipeline.skill_package import every_skill
    from forge.pipeline.skill_search import NO_EVIDENCE, search, words_of

    wanted = {find_language(language).name, "any"} if language is not None else None
    skills = every_skill(packages)
    hits = search([one for one in skills if wanted is None or wanted & set(one.front.language)], words_of(query))
    if as_json:
        emit_json([{**described_skill(hit.skill), "score": hit.score, "matched": list(hit.matched)} for hit in hits])
        return
    rows = [(hit.skill.id, hit.shown_score, ", ".join(hit.matched), hit.skill.front.summary) for hit in hits]
    emit_table("Skills", ("skill", "score", "matches", "what it is about"), rows)
    if any(hit.shown_score == NO_EVIDENCE for hit in hits):
        say(f"{NO_EVIDENCE}: most skills have these words, so they rank none first; ask with rarer words")


def described_skill(skill: "Skill") -> dict[str, object]:
    """Return a skill without its text."""
    return {**skill.front.model_dump(mode="json"), "provider": skill.provider, "sha256": skill.sha256}
