"""Skills: the playbooks that briefs quote for authors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.options import Json
from forge.cli.skill_tables import show_found, show_skills
from forge.cli.skill_tables import show_skill as show_document

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
    from forge.pipeline.skill_ranking import words_of
    from forge.pipeline.skill_search import search

    wanted = {find_language(language).name, "any"} if language is not None else None
    skills = every_skill(packages)
    hits = search([one for one in skills if wanted is None or wanted & set(one.front.language)], words_of(query))
    show_found([(described_skill(hit.skill), hit.ranked) for hit in hits], as_json=as_json)


def described_skill(skill: "Skill") -> dict[str, object]:
    """Return a skill without its text."""
    return {**skill.front.model_dump(mode="json"), "provider": skill.provider, "sha256": skill.sha256}
