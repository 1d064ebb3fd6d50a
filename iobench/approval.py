"""Leave to begin a run that costs money."""

from __future__ import annotations

import sys
from collections.abc import Callable

from iobench.errors import NotApproved
from iobench.forecast import Forecast
from iobench.forecast.words import dollars

Ask = Callable[[str], bool]


def require_leave(forecast: Forecast, limit_usd: float, *, yes: bool, ask: Ask | None) -> None:
    """Make sure that requests cost no more than ``limit_usd``, or that somebody wants it so.

    ``ask`` puts a question to a person; None where there is nobody to ask. Servers that are not
    Amazon's cost nothing that could be known, and nobody is asked about them.

    Raises:
        NotApproved: the answer is no, or there is nobody to ask.
    """
    cost = forecast.usd
    if yes or (cost.high is not None and cost.high <= limit_usd):
        return
    what = f"requests to S3 may cost {dollars(cost)}, more than cost_limit_usd ({limit_usd:g})"
    if cost.high is None:
        what = f"requests to S3 come {dollars(cost)}; cost_limit_usd is {limit_usd:g}"
    if ask is None:
        raise NotApproved(
            f"{what}: give --yes, or --set cost_limit_usd=DOLLARS; --dry-run says what costs what"
        )
    if not ask(f"{what}. Begin?"):
        raise NotApproved("not begun: nothing was measured, nothing was written")


def on_a_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()
