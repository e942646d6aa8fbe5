"""Random domains and shapes over three axes, small enough that their edges are often drawn."""

from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.kernel_domain import KernelDomain

AXES = ("m", "k", "n")
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([64, 128, 256, 1000, 65536]))


def shapes() -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries(dict.fromkeys(AXES, SIZES))


def domains() -> st.SearchStrategy[KernelDomain]:
    """A domain of any form. Contradictions are left out."""
    axis = st.one_of(
        st.fixed_dictionaries({"least": st.integers(0, 20)}, optional={"multiple_of": st.integers(1, 16)}),
        st.fixed_dictionaries({"most": SIZES}, optional={"multiple_of": st.integers(1, 16)}),
        st.fixed_dictionaries({"multiple_of": st.integers(1, 16)}),
        st.fixed_dictionaries({"values": st.lists(SIZES, min_size=1, max_size=4, unique=True)}),
    )
    pairs = st.permutations(AXES).map(lambda order: order[:2])
    relation = st.one_of(
        pairs.map(lambda two: {"kind": "divisible", "axis": two[0], "by": two[1]}),
        pairs.map(lambda two: {"kind": "not_above", "axis": two[0], "other": two[1]}),
        st.tuples(pairs, st.integers(1, 5000)).map(lambda one: {"kind": "product", "axes": one[0], "most": one[1]}),
    )
    documents = st.fixed_dictionaries(
        {"axes": st.dictionaries(st.sampled_from(AXES), axis, max_size=3)},
        optional={
            "relations": st.lists(relation, max_size=2, unique_by=str),
            "layouts": st.sampled_from([["contiguous"], ["contiguous", "strided_rows"]]),
            "alignment_bytes": st.sampled_from([2, 16]),
        },
    )
    return documents.map(_parsed).filter(lambda found: found is not None)  # type: ignore[arg-type]  # None is left out


def _parsed(document: dict[str, object]) -> KernelDomain | None:
    try:
        return KernelDomain.model_validate(document)
    except ValidationError:
        return None
