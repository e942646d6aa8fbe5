"""Answers `skill list`, `skill show` and `skill search` of the skills that ship, from a file of `docs/generate.py`.

Where the user installed a package of skills, or a skill's file isn't the one that was listed, the whole command
answers.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forge.cli.completing import completion_table
from forge.cli.plain_options import JSON, plain_options

DOCUMENTS = Path(__file__).with_name("skills.json")
PACKAGE = Path(__file__).parent.parent
MODULES = Path("node_modules")
"""Folder in which a package of skills may lie; only the whole command reads it."""
FENCE, LANGUAGE, ANY = "+++\n", "--language", "any"


def quick_skill(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of `forge skill`; return False if the whole command must answer."""
    plain = [word for word in arguments if word != JSON]
    unknown = any(word.startswith("-") for word in plain) and plain[:1] != ["search"]
    if len(arguments) - len(plain) > 1 or unknown or MODULES.exists():
        return False
    documents: list[dict[str, Any]] = json.loads(DOCUMENTS.read_bytes())  # Any: JSON documents
    files = {one["id"]: one.pop("file") for one in documents}
    if plain == ["list"]:
        if _present() != set(files.values()):
            return False
        from forge.cli.skill_tables import show_skills

        show_skills(documents, as_json=JSON in arguments)
        return True
    if plain[:1] == ["search"]:
        return _searched(documents, files, arguments[1:])
    found = [one for one in documents if plain == ["show", one["id"]]]
    text = _text(found[0], files) if found else None
    if text is None:
        return False
    from forge.cli.skill_tables import show_skill

    show_skill(found[0], text, as_json=JSON in arguments)
    return True


def _searched(documents: list[dict[str, Any]], files: dict[str, str], arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of a search; return False if the whole command must answer."""
    from forge.errors import ForgeError

    parsed = plain_options(arguments, valued=(LANGUAGE,), has_argument=True)
    if parsed is None or _present() != set(files.values()):
        return False
    given, query = parsed
    language = given.get(LANGUAGE)
    if language is not None and language not in completion_table()["values"]["language"]:
        return False
    chosen = [one for one in documents if language is None or {language, ANY} & set(one["language"])]
    texts = {one["id"]: _text(one, files) for one in chosen}
    if None in texts.values():
        return False
    from forge.cli.skill_tables import show_found
    from forge.pipeline.skill_ranking import SkillText, rank, words_of

    searched = [SkillText(one["id"], one["tags"], one["summary"], texts[one["id"]] or "") for one in chosen]
    try:
        ranked = rank(searched, words_of(query or ""))
    except ForgeError:
        return False
    known = {one["id"]: one for one in chosen}
    show_found([(known[one.id], one) for one in ranked], as_json=JSON in given)
    return True


def _present() -> set[str]:
    """Return the files of all skills that are here."""
    found = (*PACKAGE.glob("skills/*.md"), *PACKAGE.glob("languages/*/playbook.md"))
    return {path.relative_to(PACKAGE).as_posix() for path in found}


def _text(document: dict[str, Any], files: dict[str, str]) -> str | None:
    """Return a skill's text without its front matter; None if its file isn't the one that was listed."""
    try:
        content = (PACKAGE / files[document["id"]]).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != document["sha256"]:
        return None
    return content.decode().split(FENCE, 2)[2].lstrip("\n")
