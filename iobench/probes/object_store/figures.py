"""PURE. What became of the requests, as a trial's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iobench.errors import TrialFailed
from iobench.probes.object_store.reach import OVERLOADED, is_overload
from iobench.stats import quantiles
from iobench.trial import Metrics

if TYPE_CHECKING:
    from iobench.probes.object_store.copies import Copies
    from iobench.probes.object_store.streams import Attempts

_REFUSED = ("401", "403")


def metrics(
    attempts: Attempts,
    *,
    retries: int | None,
    cpu_s: float,
    refused: int | None = None,
    notes: Sequence[str] = (),
) -> Metrics:
    """``requests`` and everything about time and bytes count requests that succeeded.

    ``cpu_cores`` is how many processor cores this process kept busy: where it comes near what a
    client can use (one for pure Python), the client is the limit and not the store; in
    ``cpu_s_per_gb`` they are seconds for 10^9 bytes. ``retries``, and ``refused`` (answers 503 and
    429, by which a store asks for fewer requests), are None where they cannot be seen.
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
        "refused": refused,
        **_cpu(cpu_s, attempts.bytes, seconds),
        "notes": list(notes),
    }


def copy_metrics(copied: Copies, notes: Sequence[str]) -> Metrics:
    """The same of a program that copies: it tells no single request, and no retries."""
    return {
        "mb_per_s": _rate(copied.bytes / 1e6, copied.seconds),
        "requests_per_s": _rate(copied.objects, copied.seconds),
        "bytes": copied.bytes,
        "seconds": copied.seconds,
        "requests": copied.objects,
        "errors": {},
        "retries": None,
        "refused": None,
        **_cpu(copied.cpu_s, copied.bytes, copied.seconds),
        "notes": ["a process for all objects, its start included, into memory", *notes],
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
    said = f"{reason.rstrip('.')}: {OVERLOADED}" if is_overload(status) else reason
    raise TrialFailed(f"{uri}: every request failed, {count} of {attempts.count} with {said}")


def _cpu(cpu_s: float, moved_bytes: int, seconds: float) -> Metrics:
    return {"cpu_cores": _rate(cpu_s, seconds), "cpu_s_per_gb": _rate(cpu_s, moved_bytes / 1e9)}


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_{quantile}": value for quantile, value in quantiles(values).items()}
