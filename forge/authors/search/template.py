"""A template: an ordinary candidate whose space.json says which of its constants may take other values."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from pydantic import ValidationError

from forge.authors.search.constants import Tunable, constants_of, with_values
from forge.authors.search.space import SPACE_FILE, Space, parse_space
from forge.domain.authoring import Draft, Setting
from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest, digest_of, sha256
from forge.domain.misfit import misfit
from forge.errors import UsageError


@dataclass(frozen=True)
class Template:
    """A parsed template."""

    files: Mapping[str, str]
    """Text of the five files of a candidate."""
    metadata: Metadata
    space: Space
    constants: Mapping[str, Tunable]

    @property
    def sha256(self) -> Digest:
        """Name the template by its files and its space."""
        space = [[name, list(values)] for name, values in self.space.values.items()]
        files = {name: sha256(text.encode()) for name, text in self.files.items()}
        return digest_of(
            {"files": files, "space": space, "constraints": [one.text for one in self.space.constraints]}
        )

    @property
    def own(self) -> Draft:
        """The draft of the template's own setting."""
        return self.draft(self.space.own)

    def draft(self, setting: Setting) -> Draft:
        """Return a setting as a candidate's five files, with a hypothesis that names what changed."""
        hypothesis = self._hypothesis(setting)
        described = self.metadata.model_copy(update={"hypothesis": hypothesis, "author": None, "claims": ()})
        written = described.model_dump(mode="json", exclude_defaults=True)
        return Draft(
            files={
                **self.files,
                "kernel.py": with_values(self.files["kernel.py"], self.constants, setting.values),
                "metadata.json": orjson.dumps(written, option=orjson.OPT_INDENT_2).decode() + "\n",
            },
            hypothesis=hypothesis,
            setting=setting,
        )

    def _hypothesis(self, setting: Setting) -> str:
        own = self.space.own.values
        changed = [
            f"{name} {own[name]!r} -> {value!r}" for name, value in setting.values.items() if own[name] != value
        ]
        if not changed:
            return f"The template's own setting: {setting}."[:2000]
        return f"A setting of the template that screened faster than its own: {', '.join(changed)}."[:2000]


def parse_template(untrusted_files: Mapping[str, bytes], untrusted_space: bytes) -> Template:
    """Return the template; raise UsageError if a file or the space is bad."""
    missing = [name for name in REQUIRED_FILES if name not in untrusted_files]
    if missing:
        raise UsageError(f"the template has no {missing[0]}: expected {', '.join(REQUIRED_FILES)} and {SPACE_FILE}")
    try:
        files = {name: untrusted_files[name].decode() for name in REQUIRED_FILES}
        metadata = Metadata.model_validate(orjson.loads(files["metadata.json"]))
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the template isn't UTF-8 text (byte {error.start}): expected text saved as UTF-8"
        ) from error
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"the template's metadata.json: not JSON ({error}); expected what forge new writes"
        ) from error
    except ValidationError as error:
        raise UsageError(f"the template's metadata.json: {misfit(error, Metadata)}") from error
    constants = constants_of(files["kernel.py"], metadata.build.source if metadata.build else None)
    own = {name: one.value for name, one in constants.items()}
    space = parse_space(untrusted_space, own)
    for name, values in space.values.items():
        for value in values:
            constants[name].written(value)
    return Template(files, metadata, space, constants)
