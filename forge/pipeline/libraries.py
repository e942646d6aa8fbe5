"""The libraries of skills that a plan chooses from, described so that the plan can record them."""

from pathlib import Path

from forge import __version__
from forge.domain.digest import digest_of
from forge.events.plan import SkillLibrary
from forge.pipeline.skill_package import PACKAGE, PIN, read_package
from forge.pipeline.skills import EMBEDDED, Skill, embedded_skills

Library = tuple[tuple[Skill, ...], tuple[SkillLibrary, ...]]
"""Skills, and the libraries that they were read from."""


def read_libraries(home: Path | None) -> Library:
    """Read the embedded library, and the package in `home`; raise UsageError if the package isn't the pinned one."""
    embedded = embedded_skills()
    first = _described(embedded, provider=EMBEDDED, version=__version__)
    if home is None:
        return embedded, (first,)
    packaged = read_package(home)
    absent = SkillLibrary(provider=PACKAGE, state="absent", version=None, sha256=None, skills=0)
    second = _described(packaged, provider=PACKAGE, version=PIN) if packaged else absent
    return (*embedded, *packaged), (first, second)


def _described(skills: tuple[Skill, ...], *, provider: str, version: str) -> SkillLibrary:
    digest = digest_of({one.id: one.sha256 for one in skills})
    return SkillLibrary(provider=provider, state="read", version=version, sha256=digest, skills=len(skills))
