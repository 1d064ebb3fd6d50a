"""Nobody pays more than a limit without having agreed."""

from __future__ import annotations

import pytest

from iobench.approval import require_leave
from iobench.errors import NotApproved
from iobench.forecast import Facts, Forecast
from tests.iobench.forecast.made import AMAZON, OTHER, forecast_of
from tests.iobench.forecast.test_whole import STORE


def priced(puts: int, facts: Facts | None = None) -> Forecast:
    """One trial of so many PUTs, half a cent each."""
    facts = facts or Facts(stores={"store/s3": AMAZON})
    store = {**STORE, "max_requests": puts, "seconds": 3600}
    return forecast_of(facts, object_store=store, repeats=1)


def never(question: str) -> bool:
    """Nobody is to be asked."""
    raise AssertionError(question)


@pytest.mark.parametrize("found", [priced(100), priced(10**5, Facts(stores={"store/s3": OTHER}))])
def test_what_is_cheap_needs_no_leave(found: Forecast) -> None:
    """Half a dollar, or a server that is nobody's business."""
    require_leave(found, 1.0, yes=False, ask=never)
    require_leave(found, 1.0, yes=False, ask=None)


def test_a_dear_run_is_refused_without_anybody_to_ask() -> None:
    """What to give is said."""
    with pytest.raises(NotApproved, match=r"may cost \$5\d\d\.\d\d at most.*--yes") as caught:
        require_leave(priced(10**5), 5.0, yes=False, ask=None)
    assert caught.value.exit_code == 2


def test_a_person_decides() -> None:
    """Asked once, with the sum and the limit."""
    asked: list[str] = []

    def agrees(question: str) -> bool:
        asked.append(question)
        return True

    def refuses(question: str) -> bool:
        asked.append(question)
        return False

    require_leave(priced(10**5), 5.0, yes=False, ask=agrees)
    with pytest.raises(NotApproved, match="not begun"):
        require_leave(priced(10**5), 5.0, yes=False, ask=refuses)
    assert len(asked) == 2
    assert "cost_limit_usd (5). Begin?" in asked[0]


def test_yes_is_leave() -> None:
    """Given beforehand."""
    require_leave(priced(10**5), 5.0, yes=True, ask=never)


def test_an_unknown_price_needs_leave() -> None:
    """It may be anything."""
    from dataclasses import replace

    unpriced = priced(1, Facts(stores={"store/s3": replace(AMAZON, price=None)}))
    with pytest.raises(NotApproved, match="at an unknown price"):
        require_leave(unpriced, 1e9, yes=False, ask=None)
