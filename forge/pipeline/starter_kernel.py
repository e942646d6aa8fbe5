"""A complete kernel.py for an operation and a language: right as it is, and as slow as the reference."""

from forge.languages import Language
from forge.operations import reference_source
from forge.operations.operation import Operation
from forge.pipeline.submit import MODEL_ENTRY
from forge.pipeline.templates import environment

ENTRY = "kernel"
"""Name of the entry point in a starting point that is a function."""


def starter_kernel(operation: Operation, language: Language) -> str:
    """Return the text of the kernel.py that `forge new` writes."""
    return environment().get_template("starter_kernel.py.j2").render(**starter_names(operation, language))


def starter_names(operation: Operation, language: Language) -> dict[str, object]:
    """Return the variables of the templates of a starting point."""
    own = operation.own
    form = own.contract.form if own else "catalogue"
    arguments = operation.signature.partition("(")[2].partition(")")[0]
    return {
        "op": operation.name,
        "own": own is not None,
        "form": form,
        "language": {
            "name": language.name,
            "title": language.text or language.title,
            "starter": f"{language.name}/starter.py.j2",
        },
        "reference": reference_source(operation).strip() + ("" if own is None else "\n\nimport torch"),
        "base": own.contract.entry if own else operation.name,
        "entry": MODEL_ENTRY if form == "model" else ENTRY,
        "arguments": "*operands" if own else arguments,
        "count": sum(not getattr(one, "within", "") for one in own.contract.arguments) if own else 0,
    }
