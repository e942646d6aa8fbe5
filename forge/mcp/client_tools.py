"""The tools as clients see them: names, schemas, and the next step after an error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from forge.errors import ForgeError, UsageError
from forge.mcp import acts, forms
from forge.mcp.acts import Asking, Report
from forge.mcp.fitting import Fitted

if TYPE_CHECKING:
    from forge.app.access.tokens import Caller
    from forge.app.desk.desk import Desk

Data = dict[str, object]


@dataclass(frozen=True)
class Tool:
    """A tool as a client sees it. `refused` says what to do after an error."""

    form: type[forms.ToolForm]
    answer: Callable[[Asking, Any], Awaitable[Fitted]]  # Any: the form
    """Function that answers; its name is the tool's, its docstring the description."""
    refused: str
    fields: dict[str, str]
    """Field of the answer -> its JSON type; there may be more fields."""
    writes: bool = False

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return self.answer.__name__

    @property
    def description(self) -> str:
        """Return the description of the tool that a client gets."""
        return self.answer.__doc__ or ""

    def input_schema(self) -> Data:
        """Return the schema of the arguments, without what only takes an agent's context."""
        schema = _lean(self.form.model_json_schema())
        assert isinstance(schema, dict)
        return schema

    def output_schema(self) -> Data:
        """Return the schema of the answer."""
        properties = {name: {"type": kind} for name, kind in self.fields.items()}
        return {"type": "object", "properties": properties, "required": list(self.fields)}


def _lean(schema: object) -> object:
    """Return a schema without titles, docstrings of classes and defaults of null."""
    match schema:
        case dict():
            return {
                name: {field: _lean(inner) for field, inner in value.items()}
                if name == "properties"
                else _lean(value)
                for name, value in schema.items()
                if not (name == "title" or (name == "description" and "properties" in schema))
            }
        case list():
            return [_lean(one) for one in schema]
        case _:
            return schema


_TASK = "Call task_list for the ids of tasks."
"""Next step for an agent after a refused call with the id of a task."""
_RUN = "Give the run_id that submit returned."
"""Next step for an agent after a refused call with the id of a run."""
_SUBMIT = "Mend what the message names, then submit again."
"""Next step for an agent after a refused submission."""
_REFUSED = "Call result: only a refused candidate has one."
"""Next step for an agent after a run without a counterexample."""
_SLOT = "Give op, gpu, dtype and shape as task_list has them."
"""Next step for an agent after a refused call with the names of a slot."""
_KERNEL = "Call kernel_lookup for the id of a kernel."
"""Next step for an agent after a refused call with the id of a kernel."""
_MODEL = "Give a model that the message names."
"""Next step for an agent after a refused call with the name of a model."""
TOOLS: tuple[Tool, ...] = (
    Tool(forms.TaskListForm, acts.task_list, _TASK, {"items": "array"}),
    Tool(forms.BriefForm, acts.task_brief, _TASK, {"task_id": "string", "text": "string"}),
    Tool(forms.SubmitForm, acts.submit, _SUBMIT, {"run_id": "string", "verdict": "string"}, writes=True),
    Tool(forms.WaitForm, acts.wait, _RUN, {"run_id": "string", "state": "string", "waiting": "boolean"}),
    Tool(forms.RunForm, acts.result, _RUN, {"run_id": "string", "state": "string", "phases": "object"}),
    Tool(forms.RunForm, acts.counterexample, _REFUSED, {"run_id": "string"}),
    Tool(forms.LookupForm, acts.kernel_lookup, _SLOT, {"match": "string"}),
    Tool(forms.SourceForm, acts.kernel_source, _KERNEL, {"kernel": "string", "text": "string"}),
    Tool(forms.NotesForm, acts.notes, _TASK, {"op": "string"}),
    Tool(forms.RecommendForm, acts.recommend, _MODEL, {"model": "string"}),
    Tool(forms.BudgetForm, acts.budget, "Call it without arguments.", {}),
)
"""Tools, in the order in which a client lists them. Each answers with at least the fields that are named here."""


@dataclass(frozen=True)
class Box:
    """The tools over one desk."""

    desk: "Desk"
    tools: dict[str, Tool] = field(default_factory=lambda: {one.name: one for one in TOOLS})

    async def call(self, name: str, untrusted_arguments: Data, *, caller: "Caller", report: Report) -> Fitted:
        """Call a tool; raise ForgeError, with the next step as its hint."""
        tool = self.tools.get(name)
        if tool is None:
            unknown = UsageError(f"no tool {name[:100]!r}: expected one of {', '.join(self.tools)}")
            self.desk.record_refused(caller, unknown)
            raise unknown
        try:
            arguments = tool.form.model_validate(untrusted_arguments, strict=True)
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5])
            bad = UsageError(f"bad arguments of {name}: {told}", hint=tool.refused)
            if any(one["type"] == "extra_forbidden" for one in error.errors()):  # another author, a later phase
                self.desk.record_refused(caller, bad)
            raise bad from error
        try:
            return await tool.answer(Asking(self.desk, caller, report, arguments), arguments)
        except ForgeError as error:
            error.hint = tool.refused
            raise
