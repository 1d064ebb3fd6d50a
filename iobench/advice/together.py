"""PURE. All that is to be changed, made at once: what the loop would get then."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.advice.entry import Advice, Basis
from iobench.advice.forms import best_forms
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
    basis: Basis = "measured" if how == "measured" else "model"
    predicted = found.predicted(setting)
    limit = f", limited by {predicted.limited_by}" if predicted.limited_by else ""
    rate = gain.median * found.rate.median
    evidence = (
        f"{found.rate.median:,.0f} samples/s now, {rate:,.0f} then{limit}"
        f"{'' if basis == 'measured' else ', as the capacities predict'}"
    )
    return Advice(
        *("together", "change", found.of, evidence, value, found.now.as_dict(), gain, basis),
        config=config,
        command="iobench run",
    )


def advised(found: Situation, changes: dict[str, Advice]) -> Setting:
    """Now, with all changes that a loop's setting has."""
    setting = now = found.now
    for kind in _kinds(found, changes):
        if forms := best_forms(found, (kind,)):
            setting = now.changed(loader=forms[0].loader, form=forms[0].form)
            break
    told = {key: changes[key].value for key in _LOOP if key in changes}
    return setting.changed(**told)


def _kinds(found: Situation, changes: dict[str, Advice]) -> tuple[str, ...]:
    """Forms of data that have these changes, the likeliest first: what resizes writes shards."""
    if "resize" in changes:
        size = changes["resize"].value
        plain = (found.result.config.get("data") or {}).get("size")
        return ("shards", "files") if size == plain else (f"shards-{size}px",)
    return ("originals", "shards") if "sharding" in changes else ()


def config_of(found: Situation, setting: Setting) -> dict[str, object]:
    """Dotted keys of the run's config that make now into ``setting``."""
    names = {"loader": "loader", "form": "data", **{key: key for key in _LOOP}}
    return {
        f"{found.key}.{told}": getattr(setting, key)
        for key, told in names.items()
        if getattr(setting, key) != getattr(found.now, key)
    }
