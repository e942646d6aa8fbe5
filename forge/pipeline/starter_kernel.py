"""A complete kernel.py for an operation and a language: right as it is, and as slow as the reference."""

import re

from forge.domain.own_operation import Contract
from forge.languages import Language
from forge.operations import reference_source
from forge.operations.operation import Operation
from forge.pipeline.submit import MODEL_ENTRY
from forge.pipeline.templates import environment

ENTRY, OTHER_ENTRY = "kernel", "new_{}"
"""Name of the entry point in a starting point that is a function, and the form of another one.

The text of a reference file stands in kernel.py as well, and may use the first name.
"""


def starter_kernel(operation: Operation, language: Language) -> str:
    """Return the text of the kernel.py that `forge new` writes."""
    return environment().get_template("starter_kernel.py.j2").render(**starter_names(operation, language))


def starter_names(operation: Operation, language: Language) -> dict[str, object]:
    """Return the variables of the templates of a starting point."""
    own = operation.own
    form = own.contract.form if own else "catalogue"
    arguments = operation.signature.partition("(")[2].partition(")")[0]
    text = reference_source(operation).strip()
    return {
        "op": operation.name,
        "own": own is not None,
        "form": form,
        "language": {
            "name": language.name,
            "title": language.text or language.title,
            "starter": f"{language.name}/starter.py.j2",
        },
        "reference": text + ("" if own is None else "\n\nimport torch"),
        "base": own.contract.entry if own else operation.name,
        "entry": MODEL_ENTRY if form == "model" else _entry(text, taken=own is not None),
        "arguments": _taken(own.contract) if own else arguments,
        "init": own.contract.init if own else "",
        "init_named": (own.contract.init_named or "{}") if own else "",
        "count": sum(not getattr(one, "within", "") for one in own.contract.arguments) if own else 0,
    }


def _taken(contract: Contract) -> str:
    return "*operands, **named" if any(one.keyword for one in contract.arguments) else "*operands"


def _entry(text: str, *, taken: bool) -> str:
    """Return a name for the entry point that the reference's text doesn't use; `taken` says that it may."""
    entry = ENTRY
    while taken and re.search(rf"\b{entry}\b", text):
        entry = OTHER_ENTRY.format(entry)
    return entry
