"""PURE. What became of the requests, as a trial's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iobench.errors import TrialFailed
from iobench.stats import quantiles
from iobench.trial import Metrics

if TYPE_CHECKING:
    from iobench.probes.object_store.streams import Attempts

_REFUSED = ("401", "403")


def metrics(
    attempts: Attempts, *, retries: int | None, cpu_s: float, notes: Sequence[str] = ()
) -> Metrics:
    """``requests`` and everything about time and bytes count requests that succeeded.

    ``cpu_cores`` is how many processor cores this process kept busy: where it comes near what a
    client can use (one for pure Python), the client is the limit and not the store. ``retries``
    is None where they cannot be seen.
    """
    seconds, done = attempts.seconds, attempts.timings
    firsts = [timing.first_byte_s for timing in done if timing.first_byte_s is not None]
    bodies = [timing.body_s for timing in done if timing.body_s is not None]
    return {
        "mb_per_s": _rate(attempts.bytes / 1e6, seconds),
        "requests_per_s": _rate(len(done), seconds),
        "bytes": attempts.bytes,
        "seconds": seconds,
        "requests": len(done),
        **_named("first_byte_s", firsts),
        **_named("body_s", bodies),
        **_named("total_s", [timing.total_s for timing in done]),
        "errors": dict(sorted(attempts.errors.items())),
        "retries": retries,
        "cpu_cores": _rate(cpu_s, seconds),
        "notes": list(notes),
    }


def require_success(attempts: Attempts, uri: str) -> None:
    """Refuse a trial without a single request that succeeded.

    Raises:
        TrialFailed: with what went wrong most often.
    """
    if attempts.timings:
        return
    status, count = attempts.errors.most_common(1)[0]
    reason = attempts.reasons[status]
    if status in _REFUSED:
        raise TrialFailed(
            f"{uri}: permission refused ({reason}): check the credentials and the bucket's policy"
        )
    raise TrialFailed(f"{uri}: every request failed, {count} of {attempts.count} with {reason}")


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_{quantile}": value for quantile, value in quantiles(values).items()}
