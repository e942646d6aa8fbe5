"""Writes a reference file's contract for a guest: how to make the module, and which operand is which."""

from forge.domain.digest import canonical
from forge.domain.own_operation import Contract
from forge.domain.tensors import TORCH_NAMES

CONTRACT_FILE = "contract.json"
"""Name of the file that holds the contract."""


def contract_file(contract: Contract) -> bytes:
    """Return the content of contract.json, by which forge/guest/module.py makes and calls the reference's module."""
    return canonical(
        {
            "init": contract.init,
            "init_named": contract.init_named,
            "seed": contract.seed,
            "dtype": TORCH_NAMES[contract.dtype],
            "arguments": [
                {"literal": getattr(one, "literal", None), "name": one.name, "keyword": one.keyword}
                for one in contract.arguments
                if not getattr(one, "within", "")
            ],
            "keys": [one.key for one in contract.results if one.key],
            "returned": contract.returned,
            "borrowed": [place for place, one in enumerate(contract.results) if one.borrowed],
            "states": [
                {"names": list(one.names), "sizes": list(one.sizes), "parameter": one.parameter}
                for one in contract.weights
            ],
        }
    )
