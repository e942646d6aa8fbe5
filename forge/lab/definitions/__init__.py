"""Says how an operation is defined, and so what a candidate for it may be asked and how its reference is run.

- `definition`: the interface
- `catalogue`: an operation of Forge's catalogue, defined by its author
- `reference_file`: a user's own operation, defined by a reference file
- `contract_file`: what a guest must know to call a reference file's module
"""

from forge.lab.definitions.catalogue import Catalogue
from forge.lab.definitions.definition import Definition
from forge.lab.definitions.reference_file import ReferenceFile
from forge.operations.operation import Operation


def definition_of(operation: Operation) -> Definition:
    """Return how an operation is defined. No other code asks whether an operation is of the catalogue."""
    return Catalogue(operation) if operation.own is None else ReferenceFile(operation, operation.own.contract)
