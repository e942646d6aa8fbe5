import random

import pytest

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.evidence import Admission
from forge.domain.own_operation import Contract, is_own
from forge.errors import UnknownName, WeakTask
from forge.lab.reference.infer import Inferred
from forge.operations import OPERATIONS, find_operation, reference_source
from forge.operations.own import make_known, own_operation
from forge.pipeline.create import parse_terms
from forge.pipeline.reference import create_own
from tests.guest.test_module import CONTRACT
from tests.pipeline.making import POLICY, request

SOURCE = b"import torch\n\n\nclass Scaled: ...\n"
FROZEN: Contract = CONTRACT.model_copy(update={"source_sha256": sha256(SOURCE), "varies": True})
STRONG = Admission(mutants=9, killed=9, honest=2)


def _inferred(admission: Admission = STRONG) -> Inferred:
    return Inferred(FROZEN, SOURCE, admission, ({"batch": 3}, {"batch": 7}))


def test_a_task_names_its_file_its_contract_and_its_held_out_batches_by_digest() -> None:
    terms = parse_terms(request(), POLICY)
    task, outcome = create_own(_inferred(), terms, policy=POLICY, rng=random.Random(1))
    assert task.op.startswith("own_scaled_")
    assert task.shape == {"batch": 4}
    assert task.reference_sha256 == sha256(SOURCE)
    assert {sha256(blob) for blob in outcome.blobs} == {
        task.reference_sha256,
        task.inputs_sha256,
        task.held_out_sha256,
    }
    assert task.inputs_sha256 == digest_of(FROZEN)
    assert task.baselines == POLICY.baselines


def test_a_task_that_would_accept_a_wrong_answer_is_refused() -> None:
    weak = Admission(mutants=9, killed=8, survivors=("output: zeros",), honest=2)
    with pytest.raises(WeakTask, match="output: zeros"):
        create_own(_inferred(weak), parse_terms(request(), POLICY), policy=POLICY, rng=random.Random(1))


def test_an_own_operation_is_found_once_it_is_known_and_no_catalogue_name_is_like_it() -> None:
    operation = own_operation(FROZEN, SOURCE)
    with pytest.raises(UnknownName):
        find_operation("own_nobody_knows_it_00000000")
    make_known(operation)
    assert find_operation(operation.name) is operation
    assert reference_source(operation) == SOURCE.decode()
    assert not any(is_own(name) for name in OPERATIONS)


def test_a_contract_reads_back_to_the_same_bytes() -> None:
    assert canonical(Contract.model_validate_json(canonical(FROZEN))) == canonical(FROZEN)
