"""PURE. All that is to be changed, made at once: what the loop would get then."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.counted import counted
from iobench.advice.entry import WORTH, Advice, Basis, times
from iobench.advice.forms import best_form
from iobench.advice.situation import Situation
from iobench.whatif import Setting

_LOOP = ("workers", "prefetch", "batch_size", "pin_memory")


def together(found: Situation, entries: Sequence[Advice]) -> Advice | None:
    """The setting after every change, and its rate; None where nothing is to be changed.

    By trials of just that setting, else by the model where it holds.
    """
    changes = {entry.setting: entry for entry in entries if entry.state == "change"}
    if not changes:
        return None
    setting = advised(found, changes)
    if setting == found.now:
        return None
    value = setting.as_dict()
    config = config_of(found, setting)
    gained = found.gain_of(setting)
    if gained is None:
        missing = found.predicted(setting).missing
        why = f"not measured: {', '.join(missing)}" if missing else "the model does not hold here"
        said = f"what it would bring is not predicted: {why}"
        return Advice(
            *("together", "unknown", found.of, said, value, found.now.as_dict()),
            config=config,
            command="iobench run",
        )
    gain, how = gained
    if gain.median < WORTH or gain.low <= 1:
        if not any(entry.gain is None or entry.gain.median >= WORTH for entry in changes.values()):
            return None  # fewer workers, and as fast: nothing that the entry does not say
        said = f"{times(gain)}, not told apart from now: make one change after the other"
        return Advice(
            *("together", "unknown", found.of, said, value, found.now.as_dict()),
            config=config,
            command="iobench run",
        )
    basis: Basis = "measured" if how == "measured" else "model"
    predicted = found.predicted(setting)
    limit = f", limited by {predicted.limited_by}" if predicted.limited_by else ""
    rate = gain.median * found.rate.median
    evidence = (
        f"{found.rate.median:,.0f} samples/s now, {rate:,.0f} then{limit}"
        f"{'' if basis == 'measured' else ', as the capacities predict'}{_enough(setting, changes)}"
    )
    return Advice(
        *("together", "change", found.of, evidence, value, found.now.as_dict(), gain, basis),
        config=config,
        command="iobench run",
    )


def _enough(setting: Setting, changes: dict[str, Advice]) -> str:
    wanted = changes["workers"].value if "workers" in changes else setting.workers
    if setting.workers == wanted:
        return ""
    return f"; over {setting.form} {counted(setting.workers, 'worker')} are enough"


def advised(found: Situation, changes: dict[str, Advice]) -> Setting:
    """Now, with all changes that a loop's setting has."""
    setting = now = found.now
    shard_bytes = changes["shard_size"].value if "shard_size" in changes else None
    for kind in _kinds(found, changes):
        if (form := best_form(found, kind, shard_bytes)) is not None:
            setting = now.changed(loader=form.loader, form=form.form)
            break
    told = {key: changes[key].value for key in _LOOP if key in changes}
    return _with_enough_workers(found, setting.changed(**told))


def _with_enough_workers(found: Situation, setting: Setting) -> Setting:
    """Other data may want fewer workers than those of now: the fewest within 2 % of that rate."""
    if setting.form == found.now.form or not (setting.loop and found.holds):
        return setting
    whole = found.predicted(setting)
    if not whole.is_whole or whole.rate is None:
        return setting
    numbers = {
        s.workers for s in found.alone if (s.loader, s.kind) == (setting.loader, setting.kind)
    }
    for number in sorted(n for n in numbers if 0 < n < setting.workers):
        fewer = found.predicted(setting.changed(workers=number))
        if fewer.is_whole and fewer.rate and fewer.rate.median * WORTH >= whole.rate.median:
            return setting.changed(workers=number)
    return setting


def _kinds(found: Situation, changes: dict[str, Advice]) -> tuple[str, ...]:
    """Forms of data that have these changes, the likeliest first: what resizes writes shards."""
    if "resize" in changes:
        size = changes["resize"].value
        plain = (found.result.config.get("data") or {}).get("size")
        return ("shards", "files") if size == plain else (f"shards-{size}px",)
    if "sharding" in changes:
        return ("shards",) if found.now.packing == "files" else ("originals",)
    return ()


def config_of(found: Situation, setting: Setting) -> dict[str, object]:
    """Dotted keys of the run's config that make now into ``setting``."""
    names = {"loader": "loader", "form": "data", **{key: key for key in _LOOP}}
    return {
        f"{found.key}.{told}": getattr(setting, key)
        for key, told in names.items()
        if getattr(setting, key) != getattr(found.now, key)
    }
