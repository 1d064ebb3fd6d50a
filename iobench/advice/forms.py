"""PURE. Whether resizing beforehand pays, and whether packing into shards does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataprep.counted import counted
from iobench.advice.entry import WORTH, Advice, times, unknown
from iobench.advice.situation import Repeats, Situation, paired
from iobench.stats import Estimate
from iobench.whatif import Setting
from iobench.whatif.capacities import rate_of

_RESIZED = {"photos": ("files", "shards"), "originals": ("shards",)}  # what resizes, packs
_PACKED = {"photos": ("originals",), "files": ("shards",)}
_SMALLER = ("files", "shards")
_NEAR = ("workers", "batch_size", "prefetch", "pin_memory")
_MAYBE = 1.1  # times the rate up to which an interval must end for a firm no
_MEASURE = "iobench run configs/bench/advise.yaml measures it"


@dataclass(frozen=True, slots=True)
class Pair:
    """The same images in two forms, read alone by loaders of one framework, all else alike."""

    before: Setting
    after: Setting
    rate_before: Estimate
    rate_after: Estimate
    times: Estimate

    @property
    def said(self) -> str:
        """Both, their rates, the ratio."""
        return (
            f"{_words(self.before)} {self.rate_before.median:,.0f} samples/s, "
            f"{_words(self.after)} {self.rate_after.median:,.0f}: {times(self.times)} "
            f"(loaders alone, {self.before.source}, {counted(self.before.workers, 'worker')})"
        )


def forms(found: Situation) -> Iterator[Advice]:
    """Whether to shard, and whether to resize."""
    yield sharding(found)
    yield resizing(found)


def sharding(found: Situation) -> Advice:
    """Whether shards in place of small files bring anything, their images being the same."""
    now = found.now
    if now.packing in ("shards", "originals", "pixels"):
        why = f"its data are shards already ({now.form})"
        return Advice("sharding", "keep", found.of, why, True, True, basis="measured")
    pairs = pairs_of(found, _PACKED)
    if not pairs:
        return unknown("sharding", found.of, f"no shards of the same images were read: {_MEASURE}")
    return _judged(found, "sharding", pairs[0], after=True, before=False, config={})


def resizing(found: Situation) -> Advice:
    """Whether images that are resized beforehand bring anything, and to which size.

    The largest side within 2 % of the best: a smaller one would give up pixels for nothing.
    """
    data = found.result.config.get("data") or {}
    size = data.get("size")
    if data.get("shards"):
        why = "what the shards were made of is not known: give data.source, and no data.shards"
        return unknown("resize", found.of, why)
    if found.now.packing in _SMALLER:
        now = found.now.side or size
        why = f"its images are resized already, to {now} pixels"
        return Advice("resize", "keep", found.of, why, now, now, basis="measured")
    sides = _by_side(found, pairs_of(found, _RESIZED), size)
    least = dict(found.now.work).get("image_size", 224)
    if not sides:
        return unknown("resize", found.of, f"images were read in one size: {_MEASURE}")
    if max(sides) < least:
        why = f"{max(sides)} pixels is below the {least} that the loop takes: images would grow"
        return unknown("resize", found.of, f"{why}; measure a larger data.size")
    sides = {side: pair for side, pair in sides.items() if side >= least}
    gains = _gains(found, sides)
    best = max(gain.median for gain in gains.values())
    value = max(side for side, gain in gains.items() if gain.median * WORTH >= best)
    told = ", ".join(f"{side}: {gains[side].median:.2f}" for side in sorted(gains))
    more = f"; times the rate by pixels {told}" if len(gains) > 1 else ""
    return _judged(
        *(found, "resize", sides[value]),
        after=value,
        before=None,
        config={"image.size": value},
        more=more,
    )


def _by_side(found: Situation, pairs: Sequence[Pair], size: int | None) -> dict[int, Pair]:
    """The nearest pair of each side, all from one form: that with the most sides."""
    kinds: dict[str, dict[int, Pair]] = {}
    for pair in pairs:
        side = pair.after.side or size
        if side:
            kinds.setdefault(pair.before.kind, {}).setdefault(side, pair)
    return max(kinds.values(), key=len, default={})


def _gains(found: Situation, sides: Mapping[int, Pair]) -> dict[int, Estimate]:
    """Of the loop where every side has a gain there, else of the loaders alone."""
    gained = {side: found.gain_of(_into(found.now, pair)) for side, pair in sides.items()}
    of_loop = {side: gain[0] for side, gain in gained.items() if gain is not None}
    if len(of_loop) == len(sides):
        return of_loop
    return {side: pair.times for side, pair in sides.items()}


def _judged(
    found: Situation,
    setting: str,
    pair: Pair,
    *,
    after: Any,
    before: Any,
    config: Mapping[str, Any],
    more: str = "",
) -> Advice:
    """Change where it pays; else what stands against it."""
    gained = found.gain_of(_into(found.now, pair))
    gain, basis = gained or (None, "measured")
    judged = gain or pair.times
    sated = found.sated if gained is None else ""
    pays = judged.median >= WORTH and judged.low > 1 and not sated
    evidence = f"{pair.said}{more}"
    if gained is None and found.now.loop:
        why = "a part of it was not measured" if found.holds else "the model does not hold for it"
        evidence += f"; of the loop nothing is predicted: {why}"
    if pays:
        return Advice(
            *(setting, "change", found.of, evidence, after, before, gain),
            basis=_basis(basis),
            config=config,
            command="dataprep shard",
        )
    named = {"sharding": "resharding", "resize": "resizing beforehand"}[setting]
    if sated:
        said = f"{sated}: {named} will not help: {evidence}"
        return Advice(setting, "keep", found.of, said, before, before, basis="measured")
    if judged.median >= WORTH:
        return unknown(setting, found.of, f"it may help, and repeats differ too much: {evidence}")
    sure = judged.high < _MAYBE
    verdict = f"{named} will not help" if sure else f"there is no sign that {named} helps"
    said = f"{_bound(found.limited_by)}{verdict}: {evidence}"
    return Advice(setting, "keep", found.of, said, before, before, gain, _basis(basis))


def _bound(limited_by: str) -> str:
    words = {
        "decode": "you are decode-bound: ",
        "device": "the device is the limit: ",
        "copy": "copies to the device are the limit: ",
        "collate": "handing batches over is the limit: ",
    }
    return words.get(limited_by, "")


def _basis(basis: str) -> Any:
    return basis


def _into(now: Setting, pair: Pair) -> Setting:
    """Now, with what the pair changes."""
    return now.changed(loader=pair.after.loader, form=pair.after.form)


def pairs_of(found: Situation, steps: Mapping[str, Sequence[str]]) -> list[Pair]:
    """Pairs of forms that ``steps`` lead from and to, those nearest to now first."""
    pairs: list[Pair] = []
    for before, repeats in found.alone.items():
        if before.packing in steps and _family(before.loader) == _family(found.now.loader):
            pairs += _partners(
                found, before, repeats, steps[before.packing], packs=steps is _PACKED
            )
    return sorted(pairs, key=lambda pair: _distance(pair, found.now))


def _partners(
    found: Situation, before: Setting, repeats: Repeats, kinds: Sequence[str], *, packs: bool
) -> Iterator[Pair]:
    """``packs``: the images are to be the same, so that none are resized to a side of their own."""
    for after, beside in found.alone.items():
        same = before.changed(loader=after.loader, form=after.form)
        alike = after.packing in kinds and after == same and _follows(before.loader, after.loader)
        if not alike or (packs and after.side is not None):
            continue
        ratio, first, second = paired(beside, repeats), rate_of(repeats), rate_of(beside)
        if ratio is not None and first is not None and second is not None:
            yield Pair(before, after, first, second, ratio)


def _follows(loader: str, other: str) -> bool:
    """The same loader, or files in a framework beside shards in the same."""
    return loader == other or (loader.endswith("-folder") and _family(loader) == _family(other))


def _family(loader: str) -> str:
    return loader.partition("-")[0]


def _distance(pair: Pair, now: Setting) -> tuple[Any, ...]:
    before = pair.before
    return (
        before.work != now.work,
        before.source != now.source,
        before.kind != now.kind,
        before.workers != now.workers,
        before.batch_size != now.batch_size,
        before.prefetch != now.prefetch,
        pair.after.loader != before.loader,
        -pair.rate_after.median,
    )


def _words(setting: Setting) -> str:
    return f"{setting.loader} over {setting.form}"


def best_form(found: Situation, kind: str, shard_bytes: int | None) -> Setting | None:
    """The fastest loader of now's framework over data of that kind, with settings nearest to now's.

    Of its shards those of ``shard_bytes``, else those that the run makes; None without any.
    """
    now = found.loader
    near: dict[tuple[bool, ...], dict[Setting, float]] = {}
    for setting, repeats in found.alone.items():
        follows = setting.kind == kind and _follows(now.loader, setting.loader)
        if follows and setting.work == now.work and (rate := rate_of(repeats)) is not None:
            apart = tuple(getattr(setting, key) != getattr(now, key) for key in _NEAR)
            near.setdefault(apart, {})[setting] = rate.median
    if not near:
        return None
    rates = near[min(near, key=lambda apart: (sum(apart), apart))]
    fastest = max(rates, key=lambda setting: rates[setting])
    wanted = f"{kind}-{(shard_bytes or 0) // 10**6}MB"
    mine = [setting for setting in rates if setting.loader == fastest.loader]
    return min(mine, key=lambda s: (s.form != wanted, s.form != kind, -rates[s]))
