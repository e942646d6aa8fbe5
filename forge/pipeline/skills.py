"""Skills: short playbooks for authors. Each is a Markdown file that begins with typed front matter in TOML.

A file with a missing, misspelt or extra field is refused, and the error names the field.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from forge.domain.digest import Digest, Value, sha256
from forge.errors import UnknownName, UsageError
from forge.languages import LANGUAGES

WITHOUT_GUEST = ("asm", "ck", "hip", "metal")
"""Languages that skills speak of, though no candidate may be written in them."""
SkillPlatform = Literal["any", "cpu", "cuda", "rocm", "metal"]


def _require_language(name: str) -> str:
    known = sorted({"any", *WITHOUT_GUEST, *LANGUAGES})
    if name not in known:
        raise ValueError(f"input should be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")
    return name


SkillLanguage = Annotated[str, AfterValidator(_require_language)]
Category = Literal["hygiene", "operation", "playbook", "technique", "porting"]
"""Category of a skill.

- `hygiene`: part of every plan.
- `operation`: a guide to one operation.
- `playbook`: advice for one language, by bottleneck and layer.
- `technique`: one idea.
- `porting`: steps from one language to another.
"""
SkillId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*\.[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]

EMBEDDED = "embedded"
FENCE = "+++"
_FOLDER = Path(__file__).parent.parent / "skills"


class FrontMatter(Value):
    """The front matter of a skill: its description of itself."""

    id: SkillId
    category: Category
    language: Annotated[tuple[SkillLanguage, ...], Field(min_length=1)]
    """Languages that the author may write in; `any` fits every language."""
    platform: Annotated[tuple[SkillPlatform, ...], Field(min_length=1)]
    """Platforms that the kernel may run on; `any` fits every platform."""
    summary: Annotated[str, StringConstraints(min_length=20, max_length=200)]
    tags: Annotated[tuple[Tag, ...], Field(min_length=1)]
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class Skill(Value):
    """One playbook: its front matter, its text, and the digest of its file."""

    front: FrontMatter
    text: str
    """Markdown, without the front matter."""
    sha256: Digest
    """Digest of the whole file as it was read."""
    provider: str = EMBEDDED

    @property
    def id(self) -> str:
        """The name in plans and on the command line."""
        return self.front.id

    def fits(self, *, language: str, platform: str) -> bool:
        """Return True if the skill is for authors of `language` on `platform`."""
        front = self.front
        return bool({language, "any"} & set(front.language)) and bool({platform, "any"} & set(front.platform))


def parse_skill(untrusted_content: bytes, *, origin: str, stem: str) -> Skill:
    """Read one skill; `stem` is the file's name, which its id must equal. Raise UsageError naming `origin`."""
    untrusted_front, text = _split(untrusted_content, origin=origin)
    try:
        front = FrontMatter.model_validate(tomllib.loads(untrusted_front))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "front matter"
        fields = ", ".join(FrontMatter.model_fields)
        message = f"skill {origin}: {field}: {first['msg'].lower()}, got {first['input']!r:.80}: expected {fields}"
        raise UsageError(message) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"skill {origin}: front matter isn't TOML ({error}): expected `key = value` lines"
        ) from error
    if front.id != stem:
        raise UsageError(f"skill {origin}: id {front.id!r}: expected {stem!r}, the file's name")
    if not text.strip():
        raise UsageError(f"skill {origin}: no text after the front matter: expected Markdown")
    return Skill(front=front, text=text, sha256=sha256(untrusted_content))


def _split(untrusted_content: bytes, *, origin: str) -> tuple[str, str]:
    """Split a file into front matter and text; raise UsageError naming `origin`."""
    try:
        lines = untrusted_content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"skill {origin}: not UTF-8 ({error}): expected Markdown text") from error
    if lines[0] != FENCE or FENCE not in lines[1:]:
        raise UsageError(f"skill {origin}: expected front matter between two lines of {FENCE!r} at its beginning")
    end = lines.index(FENCE, 1)
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).lstrip("\n")


def read_skills(folder: Path) -> tuple[Skill, ...]:
    """Return every skill of a folder, by id; raise UsageError for a file that isn't one or leads out of it."""
    root = folder.resolve()
    found = sorted(folder.glob("*.md"), key=lambda path: path.stem)
    if not found:
        raise UsageError(f"no skills in {str(folder)!r}: expected Markdown files")
    for path in found:
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"skill {path.name}: leads out of its folder: expected a plain file")
    return tuple(parse_skill(path.read_bytes(), origin=path.name, stem=path.stem) for path in found)


@cache
def embedded_skills() -> tuple[Skill, ...]:
    """Return the library that ships with Forge, by id; each language's playbook lies in the language's folder."""
    files = {f"playbook.{name}": language.playbook_file for name, language in LANGUAGES.items()}
    playbooks = (parse_skill(file.read_bytes(), origin=str(file), stem=stem) for stem, file in files.items())
    return tuple(sorted((*read_skills(_FOLDER), *playbooks), key=lambda skill: skill.id))


def find_skill(skills: tuple[Skill, ...], untrusted_id: str) -> Skill:
    """Return the skill called `untrusted_id`, or raise UnknownName."""
    known = {one.id: one for one in skills}
    if untrusted_id not in known:
        raise UnknownName("skill", untrusted_id, list(known), listed_by="forge skill list")
    return known[untrusted_id]
