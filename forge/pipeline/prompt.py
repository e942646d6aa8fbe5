"""Phase 3: render the brief that an author works from."""

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from forge.domain.candidate import REQUIRED_FILES, Metadata
from forge.domain.digest import canonical, sha256
from forge.domain.policy import Policy
from forge.domain.task import Task
from forge.domain.tensors import TORCH_NAMES, TensorSpec
from forge.events import PromptRendered
from forge.events.plan import Triage
from forge.languages import find_language
from forge.operations import find_operation, reference_source
from forge.pipeline.outcome import Outcome
from forge.pipeline.skills import Skill
from forge.pipeline.triage import bottleneck
from forge.platforms import PROCESSORS

TEMPLATE, TEMPLATE_VERSION = "brief.md.j2", 2
_PACKAGE = Path(__file__).parent.parent


def render(
    task: Task, *, run_id: str, skills: tuple[Skill, ...], policy: Policy, triage: Triage | None = None
) -> Outcome:
    """Render the brief; the same task, skills and policy give the same text."""
    operation = find_operation(task.op)
    language = find_language(task.language)
    variables: dict[str, object] = {
        "task": task.model_dump(mode="json"),
        "operation": {
            "name": operation.name,
            "summary": operation.summary,
            "signature": operation.signature,
            "numerics": operation.numerics,
            "specials": operation.specials,
            "layouts": list(operation.layouts),
            "bytes_moved": operation.bytes_moved(task.shape, task.dtype),
            "flops": operation.flops(task.shape),
            "operands": [_operand(spec, task) for spec in operation.inputs],
            "results": [_operand(spec, task) for spec in operation.outputs],
        },
        "processor": PROCESSORS[task.target.gpu].name,
        "reference": reference_source(operation),
        "files": list(REQUIRED_FILES),
        "metadata_schema": _metadata_schema(),
        "verify_limit_s": policy.verify_limit_s,
        "benchmark_limit_s": policy.benchmark_limit_s,
        "language": {"name": language.name, "guide": f"{language.name}/guide.md.j2"},
        "skills": [{"id": skill.id, "text": skill.text.strip()} for skill in skills],
        "triage": None if triage is None else triage.model_dump(mode="json"),
        "bottleneck": None if triage is None else bottleneck(triage),
    }
    rendered = _environment().get_template(TEMPLATE).render(variables).encode()
    source = (_PACKAGE / "prompts" / TEMPLATE).read_bytes() + language.guide_file.read_bytes()
    event = PromptRendered(
        task_id=task.task_id,
        run_id=run_id,
        template=TEMPLATE,
        template_version=TEMPLATE_VERSION,
        template_sha256=sha256(source),
        variables_sha256=sha256(canonical(variables)),
        rendered_sha256=sha256(rendered),
    )
    return Outcome(events=(event,), files={"agent_prompt.md": rendered}, blobs=(rendered,))


@cache
def _environment() -> Environment:
    """Templates, compiled once in a process."""
    return Environment(
        loader=FileSystemLoader([_PACKAGE / "prompts", _PACKAGE / "languages"]),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 (Markdown for an author, never HTML)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _metadata_schema() -> str:
    """What metadata.json must follow."""
    return json.dumps(Metadata.model_json_schema(), indent=2, sort_keys=True)


def _operand(spec: TensorSpec, task: Task) -> dict[str, object]:
    described: dict[str, object] = {
        "name": spec.name,
        "axes": list(spec.axes),
        "sizes": list(spec.sizes(task.shape)),
    }
    return described if spec.element is None else {**described, "element": TORCH_NAMES[spec.element]}
