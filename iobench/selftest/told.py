"""The whole test, told: figures as they are measured, tables, and what became of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from iobench.selftest.known import Check
from iobench.selftest.tables import ladder_table, prefetch_table, without_line
from iobench.selftest.whole import Injected, Note

_BUSY = 0.2
"""Of the processors' time: from here on what is wrong may be other programs' doing."""

Say = Callable[[str], None]


def tell(checks: Iterable[Check], injected: Callable[[Note], Injected], say: Say) -> bool:
    """Each check when it is there, then the delays; whether all that was run was found."""
    found = []
    for check in checks:
        found.append(check)
        say(str(check))
    with _Progress() as progress:
        delays = injected(progress)
    for line in _lines(delays):
        say(line)
    return _ok(found, delays)


def as_json(checks: Iterable[Check], injected: Callable[[Note], Injected]) -> tuple[str, bool]:
    """The same as one JSON object."""
    found = list(checks)
    with _Progress() as progress:
        delays = injected(progress)
    ok = _ok(found, delays)
    content: dict[str, Any] = {
        "checks": [check.as_dict() for check in found],
        **delays.as_dict(),
        "ok": ok,
    }
    return json.dumps(content, allow_nan=False), ok


def _ok(checks: Sequence[Check], delays: Injected) -> bool:
    return delays.ok and all(check.ok for check in checks)


def _lines(delays: Injected) -> Iterator[str]:
    if delays.ladder:
        yield ""
        yield "delays without prefetch, and where the ladder finds them:"
        yield from ladder_table(delays.ladder)
        yield without_line(delays.rungs)
    if delays.prefetch:
        yield ""
        workers = delays.prefetch[0].workers
        yield f"delays with prefetch, {workers} workers: a step takes what its slowest stage takes:"
        yield from prefetch_table(delays.prefetch)
    if delays.others_share is not None:
        yield ""
        yield f"other programs took {delays.others_share:.0%} of the processors meanwhile"
        if not delays.ok and delays.others_share >= _BUSY:
            yield "which may be why: try again on a quiet machine, or with more --rounds"
    for name, why in delays.not_run:
        yield f"not run: {name}: {why}"


class _Progress:
    """What is being done, on stderr: one line that changes, or lines where nobody looks on."""

    def __init__(self) -> None:
        self._changes = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._changes:
            self._write("\r\x1b[K")

    def __call__(self, said: str) -> None:
        self._write(f"\r\x1b[K{said}" if self._changes else f"{said}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
