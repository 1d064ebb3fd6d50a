"""PURE. Loops that wait for their samples to be prepared: for which part, as far as a ladder tells.

Without a ladder decoding and augmenting are one part, and what says that they, and not too few
workers, are the cause is how many processors they would need at the device's rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from iobench.diagnosis import workers
from iobench.diagnosis.loop import BUSY, Loop
from iobench.diagnosis.rule import FINE, Rule, percent
from iobench.diagnosis.sources import CLOUD_GUIDE, OURS, STALLS, TORCH_DATA, TORCH_TUNING
from iobench.result import Finding

SMALL_PIXELS = 256
"""Short side of images of which resizing beforehand has nothing more to take."""

_RUNG = "the ladder's rung of that name: its difference to the rung above, over repeats"
UNPINNED = Rule(
    "unpinned-copy",
    "Copies to the GPU come from unpinned memory",
    "cause",
    "problem",
    f"copying to a GPU takes {FINE:.0%} of the time or more, and pin_memory is off",
    f"{_RUNG} (copy); pin_memory of the loop",
    "training.pin_memory: true (DataLoader's pin_memory=True), so that copies run beside the "
    "computation; normalise: false moves a quarter of the bytes",
    TORCH_DATA,
)
SLOW_DECODE = Rule(
    "slow-decode",
    "The loop waits for decoding",
    "cause",
    "problem",
    f"decoding takes {FINE:.0%} of the time or more",
    f"{_RUNG} (decode)",
    "images resized beforehand (dataprep shard --size 256), which decode in a fraction of the "
    "time; or stored decoded (data: pixels), a faster decoder (loader dali-gpu), more processors",
    CLOUD_GUIDE,
)
SLOW_AUGMENT = Rule(
    "slow-augmentation",
    "The loop waits for augmenting",
    "cause",
    "problem",
    f"augmenting takes {FINE:.0%} of the time or more",
    f"{_RUNG} (augment)",
    "leave out what costs most (training.colour_jitter, training.pca_noise), do it on the device "
    "(loader dali-gpu), or more processors",
    CLOUD_GUIDE,
)
SLOW_PREPARATION = Rule(
    "slow-preparation",
    "Decoding and augmenting need more processors than there are",
    "cause",
    "problem",
    f"preparing takes {FINE:.0%} of the time or more, and at the rate that the device consumes it "
    f"would keep more than {BUSY:.0%} of the processors busy; or, where that was not seen, "
    f"{BUSY:.0%} of them were busy",
    "preparation_stall ((T3 − T1) ÷ T2); cpu_s_per_1000_samples of the workers × the device's "
    "rate, beside the processors; cpu_busy_share",
    "less work a sample: images resized beforehand (dataprep shard --size 256), cheaper "
    "augmentation, data: pixels; or a machine with more processors a GPU",
    CLOUD_GUIDE,
)
SLOW_COLLATE = Rule(
    "slow-collate",
    "Collating batches and handing them over takes long",
    "cause",
    "problem",
    f"collating and handing over takes {FINE:.0%} of the time or more",
    f"{_RUNG} (collate)",
    "fewer bytes between processes: training.normalise: false hands over uint8, a quarter of "
    "float32, and normalises on the device; fewer workers with larger batches",
    OURS,
)
SLOW_COPY = Rule(
    "slow-copy",
    "Copying to the device takes long",
    "cause",
    "problem",
    f"copying to the device takes {FINE:.0%} of the time or more, from memory that is pinned, or "
    "on no GPU",
    f"{_RUNG} (copy)",
    "training.normalise: false moves a quarter of the bytes; look at the GPU's link in the "
    "report's environment (width and generation)",
    TORCH_TUNING,
)
SLOW_READ_PATH = Rule(
    "slow-read-path",
    "Reading is slow even from memory",
    "cause",
    "problem",
    f"reading from the page cache takes {FINE:.0%} of the time or more",
    f"{_RUNG} (warm)",
    "it is the reading code, no disk: whole shards instead of small files or random records "
    "(training.loader: torch-iterable), more workers",
    STALLS,
)
PREPARING = Rule(
    "preparing",
    "The loop waits for its samples to be prepared",
    "cause",
    "problem",
    f"preparing takes {FINE:.0%} of the time or more, and neither a ladder nor processor time "
    "tells whether more workers would do, or less work is needed",
    "preparation_stall ((T3 − T1) ÷ T2)",
    "try more training.workers (iobench run configs/bench/loaders.yaml finds how many); iobench "
    "ladder CONFIG tells decoding from augmenting, collating and copying",
    STALLS,
)
RULES = (
    *(UNPINNED, SLOW_DECODE, SLOW_AUGMENT, SLOW_PREPARATION, SLOW_COLLATE, SLOW_COPY),
    *(SLOW_READ_PATH, PREPARING),
)


class _Part(NamedTuple):
    rung: str
    rule: Rule
    doing: str


_PARTS = (
    _Part("decode", SLOW_DECODE, "decoding"),
    _Part("augment", SLOW_AUGMENT, "augmenting"),
    _Part("collate", SLOW_COLLATE, "collating batches and handing them over"),
    _Part("warm", SLOW_READ_PATH, "reading from the page cache"),
)
_OF_PREPARING = {"copy", *(part.rung for part in _PARTS)}


def findings(loops: Iterable[Loop]) -> Iterator[Finding]:
    """Of each loop: by rungs where there is a ladder, else as a whole."""
    for loop in loops:
        yield from _copying(loop)
        yield from _by_rung(loop)
        if "decode" not in loop.rungs:
            yield from _as_a_whole(loop)


def _by_rung(loop: Loop) -> Iterator[Finding]:
    for rung, rule, doing in _PARTS:
        share = loop.rungs.get(rung)
        if share is not None and share.counts:
            said = f"{loop.name}: {doing} takes {share} of its time{_processors(loop)}"
            advice = _advice(loop) if rule is SLOW_DECODE else ""
            yield rule.costing(said, share, advice)


def _copying(loop: Loop) -> Iterator[Finding]:
    share = loop.rungs.get("copy")
    if share is None or not share.counts:
        return
    said = f"{loop.name}: copying to the device takes {share} of its time"
    if loop.on_gpu and not loop.param.get("pin_memory"):
        yield UNPINNED.costing(f"{said}, from memory that is not pinned", share)
    else:
        yield SLOW_COPY.costing(said, share)


def _as_a_whole(loop: Loop) -> Iterator[Finding]:
    share = loop.preparation
    if share is None or not share.counts:
        return
    said = f"{loop.name}: preparing takes {share} of its time{_processors(loop)}"
    if _too_much(loop):
        yield SLOW_PREPARATION.costing(said, share, _advice(loop))
    elif not loop.rungs.keys() & _OF_PREPARING and not _of_workers(loop):
        yield PREPARING.costing(said, share)


def _of_workers(loop: Loop) -> bool:
    """Whether workers are the cause."""
    return any(finding.share is not None for finding in workers.findings([loop]))


def _too_much(loop: Loop) -> bool:
    """Whether processors have more to do than they can, or were seen to be busy."""
    if loop.cores_needed is not None and loop.processors is not None:
        return loop.cores_needed > BUSY * loop.processors
    return (loop.metric("cpu_busy_share") or 0.0) >= BUSY


def _advice(loop: Loop) -> str:
    """Where images are small already; else what the rule says."""
    if loop.resized is None or loop.resized > SMALL_PIXELS:
        return ""
    return (
        f"images are {loop.resized} pixels already: store them decoded (training.data: pixels), "
        "leave out augmentations, decode on a GPU (loader dali-gpu), or take more processors a GPU"
    )


def _processors(loop: Loop) -> str:
    """How many it would take, how many there are, how busy they were."""
    said = ""
    if loop.cores_needed is not None and loop.processors is not None:
        said += (
            f"; to keep the device fed it takes {loop.cores_needed:,.1f} processors, and there are "
            f"{loop.processors:,.4g}"
        )
    busy = loop.metric("cpu_busy_share")
    return said + (f"; processors were busy {percent(busy)}" if busy is not None else "")
