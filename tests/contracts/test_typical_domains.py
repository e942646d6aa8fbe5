"""The domains that are said to be typical are domains of their operation."""

import pytest

from forge.domain.domain_shapes import holds_at_least, nearest_inside
from forge.domain.domain_text import parse_domain
from forge.operations import OPERATIONS
from forge.operations.typical_domains import TYPICAL_DOMAINS


def test_every_operation_has_typical_domains() -> None:
    assert set(TYPICAL_DOMAINS) == set(OPERATIONS)
    assert all(TYPICAL_DOMAINS.values())


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_is_a_domain_of_the_operation_that_holds_shapes(name: str) -> None:
    operation = OPERATIONS[name]
    for typical in TYPICAL_DOMAINS[name]:
        domain = parse_domain(typical.conditions, operation.axes).resolved((*operation.inputs, *operation.outputs))
        inside = nearest_inside(domain, operation.workloads[0], {})
        assert domain.contains(inside)
        assert holds_at_least(domain, inside, 5)
        assert typical.why
