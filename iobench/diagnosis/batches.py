"""PURE. Batches too small for their device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iobench.diagnosis.loop import Loop
from iobench.diagnosis.rule import Rule, Share, percent
from iobench.diagnosis.sources import NVIDIA
from iobench.result import Finding

RISES = 1.05
"""Times the rate on resident data that a larger batch must give."""
LAUNCHING = 0.80
"""Share of the time in which any kernel runs, below which a GPU waits to be told what to do."""

BATCH_TOO_SMALL = Rule(
    "batch-too-small",
    "The batch is too small for the device",
    "setting",
    "warning",
    f"the same loop on data in the device's memory is more than {RISES:g} times as fast with a "
    f"larger batch, by their whole intervals; or a GPU fed so runs kernels less than "
    f"{LAUNCHING:.0%} of the time",
    "samples/s on input synthetic of loops that differ in batch_size alone; gpu_utilisation_share "
    "of input synthetic",
    "a larger training.batch_size, as far as memory and convergence allow: the device's rate still "
    "grows",
    NVIDIA,
)
_SAME = ("consumer", "model", "device", "devices", "precision", "image_size")


def findings(loops: Sequence[Loop]) -> Iterator[Finding]:
    """Of each loop: by its siblings of larger batches, else by what its GPU did."""
    for loop in loops:
        if (found := _grows(loop, loops) or _launches(loop)) is not None:
            yield found


def _grows(loop: Loop, others: Iterable[Loop]) -> Finding | None:
    own, batch = Share.of(loop.group.get("consumes")), loop.group.get("batch_size")
    best: tuple[float, Loop, Share] | None = None
    for other in others:
        rate, larger = Share.of(other.group.get("consumes")), other.group.get("batch_size")
        if own is None or rate is None or not isinstance(batch, int) or own.high <= 0:
            continue
        alike = all(loop.group.get(key) == other.group.get(key) for key in _SAME)
        rises = rate.low > RISES * own.high
        if alike and isinstance(larger, int) and larger > batch and rises:
            best = max(best or (0.0, other, rate), (rate.median, other, rate), key=lambda b: b[0])
    if best is None or own is None:
        return None
    _, other, rate = best
    return BATCH_TOO_SMALL.found(
        f"{loop.name}: on data in its memory the device takes {own.median:,.0f} samples/s in "
        f"batches of {batch}, and {rate.median:,.0f} in batches of {other.group['batch_size']}"
    )


def _launches(loop: Loop) -> Finding | None:
    used = Loop(loop.group, loop.resident, (), {}, None).metric("gpu_utilisation_share")
    if not loop.on_gpu or used is None or used >= LAUNCHING:
        return None
    return BATCH_TOO_SMALL.found(
        f"{loop.name}: on data in its memory the GPU runs kernels {percent(used)} of the time (by "
        "NVML): the processor cannot hand over steps of so few samples fast enough",
        severity="info",
    )
