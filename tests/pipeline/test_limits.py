"""How many searches and checks each effort level allows."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.kit import EFFORTS, Limits

COUNTS = [field.name for field in fields(Limits) if type(field.default) is int]
SET = st.fixed_dictionaries({name: st.integers(0, 100) for name in COUNTS} | {"refine": st.booleans()})


def test_efforts_scale_the_default_limits() -> None:
    usual = Limits()
    quick = replace(usual, passages=6, looked_up=2, evidence=1, pages=2, claims=3, asked_claims=1, rounds=1, examples=1)
    quick = replace(quick, refine=False)
    thorough = replace(usual, passages=15, looked_up=5, evidence=3, pages=8, claims=12, asked_claims=5)
    thorough = replace(thorough, rounds=4, examples=4, query="always")
    assert [usual.at(effort) for effort in EFFORTS] == [quick, usual, thorough]
    assert {Limits(query="never").at(effort).query for effort in EFFORTS} == {"never"}


@given(SET)
def test_more_effort_never_lowers_a_limit_and_zero_stays_zero(given_limits: dict[str, int]) -> None:
    limits = Limits(**given_limits)  # type: ignore[arg-type]
    quick, normal, thorough = (limits.at(effort) for effort in EFFORTS)
    assert normal == limits
    for name in (*COUNTS, "refine"):
        least, usual, most = (getattr(limits, name) for limits in (quick, normal, thorough))
        assert least <= usual <= most
        assert name == "refine" or (least > 0) == (usual > 0) == (most > 0)
