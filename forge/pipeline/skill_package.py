"""The second library: the npm package `@krxgu/kernel-skills`, read as data if the user installed it.

Forge runs nothing of it and downloads nothing. Its version is pinned, and every skill is recorded by digest.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from forge.domain.digest import Value, sha256
from forge.errors import UsageError
from forge.pipeline.skills import Category, FrontMatter, Skill, SkillLanguage, SkillPlatform, embedded_skills

PACKAGE, PIN = "@krxgu/kernel-skills", "0.2.0"
MODULES = "node_modules"
MOST_BYTES = 64 * 1024
"""Largest size of a skill in bytes. Skills of the pinned version have at most 20 KB."""
_INSTALL = f"npm install --ignore-scripts {PACKAGE}@{PIN}"
_LANGUAGES: dict[str, SkillLanguage] = {"cuda": "cuda", "hip": "hip", "triton": "triton"}
"""Package's language -> ours. Its `cpp` and `python` mean the host's side of a GPU kernel, so they are left out."""
_PLATFORMS: dict[str, SkillPlatform] = {"nvidia": "cuda", "amd": "rocm", "apple": "metal", "cpu": "cpu"}
_CATEGORIES: dict[str, Category] = {"inference": "operation", "portability": "porting"}
_WRITES = "write-"
"""Prefix of the package's name for a guide to one kernel."""
Parsed = TypeVar("Parsed", bound=Value)


class _Manifest(Value):
    """The two fields of package.json that Forge reads."""

    model_config = ConfigDict(extra="ignore")

    name: Literal["@krxgu/kernel-skills"]
    version: str


class _PackageRecord(Value):
    """`skill.json` of the package, version 0.2.0."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*$")]
    name: str
    category: str
    summary: Annotated[str, StringConstraints(min_length=20)]
    tags: Annotated[tuple[str, ...], Field(min_length=1)]
    difficulty: Literal["beginner", "intermediate", "advanced"]
    hardware: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    version: str
    entry: str


def every_skill(home: Path) -> tuple[Skill, ...]:
    """Return the embedded skills and the package's; raise UsageError if the package isn't the pinned one."""
    return (*embedded_skills(), *read_package(home))


def read_package(home: Path) -> tuple[Skill, ...]:
    """Return the skills of the package under `home`, if it is there; raise UsageError unless it is the pinned one."""
    root = home / MODULES / PACKAGE
    if not root.is_dir():
        return ()
    root = root.resolve()
    manifest = _parse(_Manifest, _bytes_of(root, "package.json"), origin="package.json")
    if manifest.version != PIN:
        raise UsageError(f"{PACKAGE} is version {manifest.version!r}: expected {PIN!r}", hint=_INSTALL)
    records = sorted(path.relative_to(root).as_posix() for path in root.glob("skills/*/*/skill.json"))
    if not records:
        raise UsageError(f"{PACKAGE} in {str(root)!r} holds no skills/*/*/skill.json: expected some", hint=_INSTALL)
    skills = tuple(_skill(root, record) for record in records)
    if len({one.id for one in skills}) != len(skills):
        raise UsageError(f"{PACKAGE}: two skills of one id: expected ids to be unique", hint=_INSTALL)
    return skills


def _skill(root: Path, record: str) -> Skill:
    """Return one skill, described like one of the embedded library."""
    found = _parse(_PackageRecord, _bytes_of(root, record), origin=record)
    content = _bytes_of(root, found.entry)
    languages = tuple(sorted({_LANGUAGES[one] for one in found.languages if one in _LANGUAGES}))
    platforms = tuple(sorted({_PLATFORMS[one] for one in found.hardware if one in _PLATFORMS}))
    try:
        text = content.decode("utf-8")
        front = FrontMatter(
            id=found.id,
            category=_CATEGORIES.get(found.category, "operation" if _WRITES in found.id else "technique"),
            language=languages or ("any",),
            platform=platforms or ("any",),
            summary=found.summary[:200],
            tags=tuple(re.sub(r"[^a-z0-9_-]+", "-", one.lower()).strip("-_") for one in found.tags),
            version=found.version,
        )
    except (ValidationError, UnicodeDecodeError) as error:
        message = (
            f"{PACKAGE}: {record}: not a skill that can be read ({str(error).splitlines()[0]}): expected {PIN}'s"
        )
        raise UsageError(message, hint=_INSTALL) from error
    return Skill(front=front, text=text, sha256=sha256(content), provider=f"{PACKAGE}@{PIN}")


def _bytes_of(root: Path, untrusted_path: str) -> bytes:
    """Return the bytes of a file of the package; it must be a plain file inside it, of limited size."""
    path = root / untrusted_path
    if not _is_plain(root, path):
        message = f"{PACKAGE}: {untrusted_path!r}: expected a plain file inside the package, no link and no way out"
        raise UsageError(message, hint=_INSTALL)
    if path.stat().st_size > MOST_BYTES:
        message = f"{PACKAGE}: {untrusted_path!r} has {path.stat().st_size} bytes: expected at most {MOST_BYTES}"
        raise UsageError(message, hint=_INSTALL)
    return path.read_bytes()


def _is_plain(root: Path, path: Path) -> bool:
    """Return True if the path is a file below `root` without any link on the way."""
    try:
        return path.resolve() == path and path.is_relative_to(root) and path.is_file()
    except (OSError, ValueError, RuntimeError):  # an impossible file name, or a link to itself
        return False


def _parse(kind: type[Parsed], untrusted_content: bytes, *, origin: str) -> Parsed:
    """Parse a JSON file of the package; raise UsageError naming `origin`."""
    try:
        return kind.model_validate(orjson.loads(untrusted_content))
    except (orjson.JSONDecodeError, ValidationError) as error:
        message = f"{PACKAGE}: {origin}: {str(error).splitlines()[0]}: expected what version {PIN} holds"
        raise UsageError(message, hint=_INSTALL) from error
