"""Writes docs/reference/ from the code: `python docs/generate.py`; with `--check` it only compares.

The same code gives the same bytes. `--check` exits 1 and names the pages that differ.
"""

import argparse
import ast
import inspect
import json
import sys
import textwrap
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from forge.cli import command_tree
from forge.domain import (
    authoring,
    budget,
    candidate,
    digest,
    environment,
    evidence,
    experiment,
    feedback,
    kernel_domain,
    policy,
    session,
    target,
    task,
    tensors,
    verdict,
)
from forge.domain.field_docstrings import class_body, docstrings_of
from forge.events import EVENT_TYPES, ChosenSkill
from forge.events.kinds import KINDS
from forge.lab.gates import GATES
from forge.lab.verification import ORDER
from forge.languages import LANGUAGES
from forge.ledger.actor_rights import MAY_WRITE
from forge.ledger.audit.referenced_blobs import STORED_FIELDS
from forge.operations import OPERATIONS, reference_source
from forge.operations.operation import Operation
from forge.operations.scores import MutantScore, mutant_scores
from forge.operations.typical_domains import TYPICAL_DOMAINS
from forge.pipeline import metadata_schema
from forge.pipeline.create import USUAL_ROOM_BYTES
from forge.pipeline.promote import RULES
from forge.pipeline.prompt import described_processor
from forge.pipeline.templates import environment as templates
from forge.platforms import PROCESSORS

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests are no part of the package
from docs import completions, shipped
from tests.evil.described import CANDIDATES, CATALOGUE, Described, described
from tests.ledger.edits.catalogue import EDITS
from tests.ledger.edits.copy import Found

FOLDER = Path(__file__).parent / "reference"
COMPLETIONS = "../../forge/cli/completions.json"
"""Place of what a shell completes, beside the code that reads it."""
OPERATION_DOCUMENTS = "../../forge/cli/operations.json"
"""Place of the catalogue's operations, beside the code that reads them."""
SKILL_DOCUMENTS = "../../forge/cli/skills.json"
"""Place of what is listed of the skills that ship, beside the code that reads it."""
NOTE = "<!-- Written by docs/generate.py from the code. Edit the code, then run `make docs`. -->"
NOUNS = (
    *(authoring, budget, candidate, digest, environment, evidence, experiment, kernel_domain, policy, session),
    *(target, task, tensors, verdict),
)


def main() -> int:
    """Write the pages, or with `--check` compare them; the exit status."""
    parser = argparse.ArgumentParser(description="Write docs/reference/ from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    only_check: bool = parser.parse_args().check
    stale = [name for name, text in pages().items() if not _holds(FOLDER / name, text)]
    if only_check:
        for name in stale:
            sys.stderr.write(f"stale: docs/reference/{name}; run: make docs\n")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(pages()[name], encoding="utf-8")
        sys.stdout.write(f"docs/reference/{name}\n")
    return 0


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def pages() -> dict[str, str]:
    """Every generated page, by its place from docs/reference/."""
    return {
        "cli.md": _page("Commands", _commands()),
        "events.md": _page("Events", _events()),
        "blobs.md": _page("Fields that name stored bytes", _blobs()),
        "operations.md": _page("Operations", _operations()),
        "gates.md": _page("Gates and rules", _gates()),
        "attacks.md": _page("Gates and attacks", _attacks()),
        "edits.md": _page("Edits of a ledger, and what finds them", _edits()),
        "languages.md": _page("Languages and processors", _languages()),
        "policy.md": _page("Policy", _policy()),
        "registry.md": _page("The registry that ships", _shipped()),
        "metadata.schema.json": _metadata_schema(),
        "feedback.schema.json": _feedback_schema(),
        COMPLETIONS: completions.table(),
        OPERATION_DOCUMENTS: completions.operations(),
        SKILL_DOCUMENTS: completions.skills(),
    }


def _page(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", NOTE, "", *lines]).rstrip() + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _prose(text: str | None) -> str:
    """A docstring as paragraphs, each on one line."""
    paragraphs = textwrap.dedent(text or "").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _shipped() -> Iterator[str]:
    yield from shipped.introduction()
    yield from _table(shipped.HEADER, shipped.rows())
    yield from shipped.resident()
    yield from _table(shipped.RESIDENT_HEADER, shipped.resident_rows())
    yield from shipped.left_out()


# Commands


def _commands() -> Iterator[str]:
    yield "This page lists every command with its arguments."
    yield "Data goes to stdout: a table, or with `--json` one JSON document."
    yield "Progress, hints and errors go to stderr."
    yield ""
    yield "Exit status: 0 done or accepted; 1 refused; 2 bad input; 3 this machine can't do it; 130 interrupted."
    yield "`forge demo` exits 0 only if its honest kernel was promoted and its cheat refused."
    yield ""
    found = list(_walk(command_tree(), "forge"))
    rows = ((f"[`{path}`](#{path.replace(' ', '-')})", _prose(one.help).split("\n\n")[0]) for path, one in found)
    yield from _table(("command", "does"), rows)
    for path, command in found:
        yield from _command(path, command)


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:  # Any: Typer's command classes are private
    children: Mapping[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from _walk(child, f"{path} {name}")


def _command(path: str, command: Any) -> Iterator[str]:  # Any: as above
    said, _, example = _prose(command.help).partition("Example: ")
    yield from (f"## {path}", "", said.strip(), "")
    yield from ("```sh", example.strip(), "```", "")
    hints = typing.get_type_hints(inspect.unwrap(command.callback), include_extras=False)
    rows = [
        (
            f"`{_spelled(one)}`",
            _choices(hints[one.name]),
            _default(one),
            _prose(one.help),
        )
        for one in command.params
        if one.name in hints
    ]
    if rows:
        yield from _table(("argument", "takes", "default", "meaning"), rows)


def _spelled(parameter: Any) -> str:  # Any: as above
    return (
        ", ".join(parameter.opts)
        if parameter.param_type_name == "option"
        else str(parameter.metavar or parameter.name).upper()
    )


def _choices(annotation: object) -> str:
    literals = [one for one in _parts(annotation) if isinstance(one, str)]
    if literals:
        return ", ".join(f"`{one}`" for one in literals)
    names = {str: "text", int: "whole number", float: "number", Path: "path", bool: ""}
    return next((names[one] for one in _parts(annotation) if one in names), "text")


def _parts(annotation: object) -> Iterator[Any]:  # Any: whatever a type is made of
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _parts(argument)


def _default(parameter: Any) -> str:  # Any: as above
    if parameter.required:
        return "required"
    shown = parameter.default not in (None, False, []) and parameter.show_default
    return f"`{parameter.default}`" if shown else ""


# Events


def _events() -> Iterator[str]:
    yield "This page lists every type of event that the ledger can hold."
    yield "The set is closed; each type has a stable name and a version."
    yield "Beside its payload every event has the columns that [the ledger](../ledger.md) describes."
    yield "A type may be defined before a command writes it; [the README](../../README.md#status) says what exists."
    yield ""
    rows = (
        (f"[`{name}`](#{name.lower()})", _prose(one.__doc__).split("\n\n")[0]) for name, one in EVENT_TYPES.items()
    )
    yield from _table(("event", "says"), rows)
    named: dict[str, type[digest.Value]] = {}
    for name, event in EVENT_TYPES.items():
        yield from (f"## {name}", "", _prose(event.__doc__), "")
        writers = ", ".join(f"`{one}:`" for one, groups in MAY_WRITE.items() if KINDS[name].group in groups)
        yield f"Version {KINDS[name].version}. Stream `{KINDS[name].stream}`. Written by {writers}."
        if name == "CandidateRejected":
            yield "At the stage `submit` it counts as part of a submission: every actor that may submit may write it."
        yield ""
        yield from _fields(event)
        named |= _values_in(event)
    yield from ("# Values", "", "What the payloads above are made of.", "")
    for name, value in sorted(
        {**named, **{k: v for one in named.values() for k, v in _values_in(one).items()}}.items()
    ):
        yield from (f"## {name}", "", _prose(value.__doc__), "")
        yield from _fields(value)


def _fields(model: type[digest.Value]) -> Iterator[str]:
    written, meanings = _annotations(model), docstrings_of(model)
    rows = [
        (
            f"`{name}`",
            f"`{written[name]}`",
            "" if field.is_required() else f"`{_text_of(field)}`",
            _prose(meanings.get(name)),
        )
        for name, field in model.model_fields.items()
    ]
    yield from _table(("field", "type", "default", "meaning"), rows)


def _text_of(field: Any) -> str:  # Any: pydantic's FieldInfo
    return _written(field.get_default(call_default_factory=True))


def _written(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _annotations(model: type[digest.Value]) -> dict[str, str]:
    """Field -> its type as the source says it, without the bounds."""
    found = {}
    for node in class_body(model):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = node.annotation
            if isinstance(text, ast.Subscript) and ast.unparse(text.value) == "Annotated":
                assert isinstance(text.slice, ast.Tuple)
                text = text.slice.elts[0]
            found[node.target.id] = ast.unparse(text)
    return found


def _values_in(model: type[digest.Value]) -> dict[str, type[digest.Value]]:
    """The domain's values that a model's fields name, and those inside them."""
    known = {name: one for module in NOUNS for name, one in vars(module).items() if _is_value(one)}
    known["ChosenSkill"] = ChosenSkill
    found: dict[str, type[digest.Value]] = {}
    for text in _annotations(model).values():
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name) and node.id in known and known[node.id] is not model:
                found[node.id] = known[node.id]
                found |= _values_in(known[node.id])
    return found


def _is_value(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, digest.Value) and one is not digest.Value


# Operations


def _operations() -> Iterator[str]:
    yield "This page lists the operations that a task can ask for."
    yield "To add one, see [add an operation](../how-to/add-an-operation.md)."
    yield ""
    yield "The mutant score says how many of the tried wrong answers are refused in every element type."
    yield "`make scores` measures it at small shapes; a task tries the wrong answers again at its own shape."
    yield ""
    yield "A workload has room if its operands take an eighth of `memory_limit_bytes` in fp64: 1 GiB by default."
    yield "On a GPU they may take an eighth of the device's memory, if that is more: 17 GB on an H200."
    yield f"It also has room if they take at most {USUAL_ROOM_BYTES // 2**20} MiB in the task's types."
    yield "For a larger workload raise the limit: see [tune the policy](../how-to/tune-the-policy.md)."
    yield ""
    rows = (
        (f"[`{one.name}`](#{one.name})", f"`{one.signature}`", one.summary, _score(mutant_scores()[one.name]))
        for one in OPERATIONS.values()
    )
    yield from _table(("operation", "signature", "what it is", "mutant score"), rows)
    for operation in OPERATIONS.values():
        yield from _operation(operation)


def _score(score: MutantScore) -> str:
    return f"{score.killed} of {len(score.mutants)}"


def _operation(one: Operation) -> Iterator[str]:
    yield from (f"## {one.name}", "", f"`{one.signature}`: {one.summary}.", "")
    operands = [(f"`{spec.name}`", "input", ", ".join(spec.axes)) for spec in one.inputs]
    operands += [(f"`{name}`", "scalar", f"`{value}` by default") for name, value in one.scalars.items()]
    operands += [(f"`{spec.name}`", "output", ", ".join(spec.axes)) for spec in one.outputs]
    yield from _table(("operand", "is", "axes"), operands)
    yield f"Element types: {', '.join(f'`{dtype}`' for dtype in one.dtypes)}."
    summed = "is as wide as a row" if one.updates else "is summed over"
    yield f"Rows are along `{one.row_axis}`; `{one.reduced_axis}` {summed}."
    if one.updates:
        yield f"Updated in place and not returned: {', '.join(f'`{name}`' for name in one.updates)}."
    yield ""
    yield from ("### Domains", "", "Real kernels of this operation often have one of these domains:", "")
    for typical in TYPICAL_DOMAINS[one.name]:
        yield f"- `{typical.conditions}`: {typical.why}"
    yield ""
    yield from ("### Reference", "", "```py", reference_source(one).rstrip(), "```", "")
    yield from ("### Error bound", "", one.numerics, "")
    score = mutant_scores()[one.name]
    yield from ("### Mutants", "", f"{_score(score)} known wrong answers are refused in every element type:", "")
    for name in score.mutants:
        accepted = f" (accepted in {', '.join(score.survivors[name])})" if name in score.survivors else ""
        yield f"- {name}{accepted}"
    right = f"{score.accepted} of {len(score.honest)} right ones are accepted: {'; '.join(score.honest)}."
    yield from ("", right, "")
    yield from ("### Least work", "", "At the standard shapes, in fp32:", "")
    rows = (
        (
            ", ".join(f"{axis} {size}" for axis, size in shape.items()),
            one.bytes_moved(shape, "fp32"),
            one.flops(shape),
        )
        for shape in one.workloads
    )
    yield from _table(("shape", "bytes moved", "flops"), rows)


# Gates


def _gates() -> Iterator[str]:
    yield "A verification asks these questions in this order and stops at the first refusal."
    yield "Each answer is recorded with what was observed and what is allowed."
    yield ""
    yield from _table(("gate", "asks"), _asked())
    gates = {gate.name: gate for gate in GATES}
    for name in ORDER:
        if name not in gates:
            yield from (f"## {name}", "", *_OTHER_QUESTIONS[name], "")
            continue
        module = inspect.getmodule(gates[name].examine)
        assert module is not None
        yield from (f"## {name}", "", _prose(module.__doc__), "")
        for asks in dict.fromkeys(part.examine for part in gates[name].parts):
            yield from (_prose(asks.__doc__), "")
    yield from ("# Rules of promotion", "")
    yield "The rules are applied in this order to recorded events and the policy."
    yield "The first rule that isn't met denies the promotion."
    yield ""
    yield from _table(("rule", "reason if it isn't met"), ((f"`{rule.name}`", f"`{rule.code}`") for rule in RULES))


_OTHER_QUESTIONS = {
    "sources": (
        "Does `kernel.py` parse, define the entry point and use the task's language? It is read, never run.",
        "",
        "The host reads the file's syntax tree.",
        "It refuses text that isn't UTF-8, a kernel that is provably never launched, and what the language forbids.",
        "Places that only deserve a look, such as a global variable, are listed in the record and refuse nothing.",
        "This step explains and saves time; only the sandbox holds a hostile candidate back.",
    ),
    "build": (
        "Does the builder make a shared object? Asked only for a language with a build.",
        "",
        "A separate sandbox runs the compiler on the candidate's sources, with the host's flags after its own.",
        "The candidate isn't run there, and the network can't be reached.",
        "A build that fails is `COMPILE_ERROR`, with the compiler's last lines.",
        "A machine without the compiler gives no verdict.",
    ),
    "load": (
        "Can `kernel.py` be imported and the entry point found? Recorded only if it fails.",
        "",
        "The guest of the gates imports the file and what was built.",
        "An import that raises, ends the process or takes too long is refused.",
        "If it succeeds, the gates follow in the same process.",
    ),
    "plan": (
        "On a GPU: can a call be written as a launch plan, and does the launcher give right answers with it?",
        "",
        "A plan is the list of launches and copies that one call makes, with the device code.",
        "A trusted process, the launcher, repeats them without the candidate's host code.",
        "The plan is launched on inputs of each kind; each answer must be within the bound.",
        "On one question its answer must equal the calls' answers bit for bit, unless those differ among themselves.",
        "A call that can't be written as a plan isn't refused here: the record says why there is no plan.",
    ),
    "threads": (
        "On a processor: is a compiled kernel right with more threads than processors?",
        "",
        "One guest has 15 or 31 threads more than usual, at random.",
        "Others have one thread, and each number from two to eight.",
        "A buffer with room for one thread per processor then overflows, and rows that no thread takes stay wrong.",
        "The sizes are the public shape and an odd width with many rows.",
        "A thread that the machine can't start gives no verdict.",
    ),
    "sanitizer": (
        "Does the language's sanitizer (AddressSanitizer, compute-sanitizer) find nothing?",
        "",
        "On a processor the candidate is built once more with AddressSanitizer.",
        "That build is called at the public shape and at odd ones.",
        "The tool finds accesses beside buffers, on the stack and in freed memory.",
        "On an NVIDIA GPU the built files run under three tools of compute-sanitizer.",
        "They find accesses outside an allocation, races in shared memory, and reads of unwritten memory.",
        "There a report refuses the candidate if the tool reports nothing about the reference.",
        "The policy's `sanitizer` turns this step off.",
    ),
    "own_tests": (
        "Does the candidate's own `test_correctness.py` pass? It can only cause a refusal.",
        "",
        "pytest runs the file in the sandbox. A failure is `BAD_SUBMISSION`; a pass proves nothing.",
        "Without the file nothing is asked.",
    ),
}
"""Sections of the questions that aren't gates of a loaded candidate, by name. The first line says what is asked."""


def _asked() -> Iterator[tuple[str, str]]:
    gates = {gate.name: gate for gate in GATES}
    for name in ORDER:
        if name in gates:
            module = inspect.getmodule(gates[name].examine)
            assert module is not None
            yield f"[`{name}`](#{name})", _prose(module.__doc__).split("\n\n")[0]
        else:
            yield f"[`{name}`](#{name})", _OTHER_QUESTIONS[name][0]


# Attacks


def _attacks() -> Iterator[str]:
    said = {path.stem: described(path) for path in CANDIDATES}
    refused = sum(one.gate is not None for one in said.values())
    yield f"This page lists {len(said)} hostile or wrong candidates."
    yield "Each is a file in `tests/evil/candidates/` and a test."
    yield f"{refused} are refused. The others give right answers and gain nothing, or show a stated limit."
    yield "Each must end as its first lines say, within its time limit and five seconds, with no process left."
    yield ""
    yield "The table says how many candidates of each group end at which gate; one may belong to several groups."
    yield "`any` is for races: the first gate whose call shows the fault refuses."
    yield ""
    gates = sorted({_ended(one) for one in said.values()}, key=_gate_order)
    counts = Counter((_ended(one), group) for one in said.values() for group in one.groups)
    rows = ((gate, *(counts[gate, group] or "" for group in CATALOGUE)) for gate in gates)
    yield from _table(("gate", *CATALOGUE.values()), rows)
    for group, title in CATALOGUE.items():
        yield from (f"## {title[0].upper()}{title[1:]}", "")
        listed = [(name, one) for name, one in said.items() if one.entries[0].startswith(group)]
        yield from _table(("candidate", "tries", "ends"), (_attack(name, one) for name, one in listed))


def _edits() -> Iterator[str]:
    count = sum(map(len, EDITS.values()))
    yield f"This page lists {count} edits that the owner of the files could make."
    yield "Each is a test in `tests/ledger/edits/`, on a copy of one ledger."
    yield "The column says what finds the edit: `forge ledger verify` ends with 1 and a line that names the place."
    yield "`kept` needs a checkpoint or a key from another place: [what stops what](../ledger.md#what-stops-what)."
    yield "No reader refuses what verification accepts."
    yield ""
    found = list(typing.get_args(Found))
    counts = {kind: Counter(edit.found for edit in edits) for kind, edits in EDITS.items()}
    rows = [(kind, len(EDITS[kind]), *(counts[kind][by] or "" for by in found)) for kind in EDITS]
    totals = ("**all**", count, *(sum(one[by] for one in counts.values()) for by in found))
    yield from _table(("kind", "edits", *(f"`{by}`" if by == "--full" else by for by in found)), [*rows, totals])
    for kind, edits in EDITS.items():
        yield from (f"## {kind}", "")
        yield from _table(("edit", "found by", "why no sooner"), ((one.name, one.found, one.why) for one in edits))


def _attack(name: str, one: Described) -> tuple[str, str, str]:
    codes = " or ".join(f"`{code}`" for code in one.codes)
    language = "" if one.language == "torch" else f" ({one.language})"
    ends = f"accepted: {one.why_accepted}" if one.gate is None else f"{one.gate}: {codes}"
    return f"`{name}`{language}", one.tries, ends


def _ended(one: Described) -> str:
    return one.gate or "accepted"


def _gate_order(gate: str) -> tuple[int, str]:
    order = (*ORDER, "any", "accepted")
    return (order.index(gate), gate)


# Languages, policy, metadata


def _languages() -> Iterator[str]:
    rows = (
        (
            f"[`{one.name}`](#{one.name})",
            one.summary,
            "yes" if one.builds else "no",
            ", ".join(one.times_on),
            ", ".join(one.stands_in_on) or "nowhere",
        )
        for one in LANGUAGES.values()
    )
    yield from _table(("language", "is", "built first", "its times count on", "simulated on"), rows)
    yield "A simulated verification is recorded as simulated and never leads to a promotion."
    yield ""
    for language in LANGUAGES.values():
        yield from (f"## {language.name}", "", "What an author is told, for an H200 where it matters:", "")
        guide = templates().from_string(language.guide_file.read_text(encoding="utf-8"))
        told = guide.render(hardware=described_processor(PROCESSORS["h200"], "bf16")).strip()
        yield from (f"> {line}".rstrip() for line in told.splitlines())
        yield ""
    yield from ("# Processors", "", "What `--gpu` takes; spaces and case don't matter (`RTX 4070` is `rtx4070`).")
    yield from ("Bandwidths are the vendors' figures, for orientation; a floor is computed from a measurement.", "")
    rows = (
        (f"`{one.slug}`", one.name, one.platform, one.arch, _bandwidth(one.peak_bandwidth_gb_s))
        for one in PROCESSORS.values()
    )
    yield from _table(("`--gpu`", "processor", "platform", "architecture", "by data sheet, GB/s"), rows)


def _bandwidth(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _policy() -> Iterator[str]:
    yield "This page lists the fields of `policy.toml` in the workspace; a field that is left out keeps its default."
    yield "An unknown field or a value out of range is refused."
    yield "[Tune the policy](../how-to/tune-the-policy.md) says what to consider before you change one."
    yield ""
    schema, meanings = policy.Policy.model_json_schema()["properties"], docstrings_of(policy.Policy)
    defaults = {name: _written(value) for name, value in policy.new_policy()}
    rows = (
        (f"`{name}`", _range(schema[name]), f"`{default}`", _prose(meanings.get(name)))
        for name, default in defaults.items()
    )
    yield from _table(("field", "allowed", "default", "meaning"), rows)
    yield from ("The defaults as a file:", "", "```toml")
    yield from (f"{name} = {default}" for name, default in defaults.items())
    yield "```"


def _range(schema: Mapping[str, Any]) -> str:  # Any: a JSON schema
    inner = schema.get("items", schema)
    if "enum" in inner:
        return ", ".join(f"`{one}`" for one in inner["enum"])
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    return ", ".join(f"{word} {schema[key]:g}" for key, word in words.items() if key in schema)


def _blobs() -> Iterator[str]:
    yield "This page lists the fields of events whose digest names stored bytes."
    yield "`forge ledger verify` requires that these bytes are stored under `forge_runs/cas/`."
    yield "`[]` stands for each item of a list. Null names nothing; an older event may lack a field."
    yield "Any other field called `...sha256` is compared with its bytes too, if they are stored."
    yield ""
    yield "| event | field |"
    yield "|---|---|"
    for name, fields in sorted(STORED_FIELDS.items()):
        for field in fields.stored:
            yield f"| {name} | `{field}` |"
        for field in fields.own:
            yield f"| {name} | `{field}`, for an operation of the user |"
        for field in fields.left_out:
            yield f"| {name} | `{field}`, if the payload has it |"
        for field in fields.pieces:
            yield f"| {name} | `{field}`, those that begin with `sha256:` |"


def _feedback_schema() -> str:
    written = feedback.FeedbackDocument.model_json_schema()
    return (
        json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **written}, indent=2, sort_keys=True)
        + "\n"
    )


def _metadata_schema() -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **metadata_schema.published_schema()}
    language = {"enum": list(LANGUAGES), "title": "Language", "type": "string"}
    schema["properties"] = {**schema["properties"], "language": language}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.exit(main())
