"""PURE. What to change: each setting with its gain and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.advice.words import NAMES, few_repeats_words, value_words
from iobench.report.model.numbers import as_estimate, between, number
from iobench.report.model.shapes import Block, Entry, Section, Table, Words
from iobench.result import Result

_STATES = {"change": "change", "keep": "leave as it is", "unknown": "not known"}
_BASES = {"measured": "measured", "model": "predicted by the model"}
_COLUMNS = ("setting", "to", "times the rate", "evidence")


def sections(result: Result) -> tuple[Section | None, Section | None]:
    """The same where there is something to change, and where there is nothing.

    The one stands near the top of the page, the other behind what the loop was measured for.
    """
    found = section(result)
    changes = any(entry["state"] == "change" for entry in entries_of(result))
    return (found, None) if changes else (None, found)


def section(result: Result) -> Section | None:
    """One sentence, then a row a setting; None where a run has no advice at all."""
    advice = entries_of(result)
    if not advice:
        return None
    order = list(_STATES)
    ranked = sorted(advice, key=lambda entry: order.index(entry["state"]))
    rows = tuple(_row(entry) for entry in ranked)
    blocks: tuple[Block, ...] = (
        Words((_sentence(advice),)),
        Table("Settings, and what the run says of each", _COLUMNS, rows),
        Words(tuple(filter(None, (_how(advice), few_repeats_words(advice))))),
    )
    return Section("advice", "What to change", blocks)


def entries_of(result: Result) -> list[Mapping[str, Any]]:
    """Advice as the summary keeps it, what is malformed left out; older results have none."""
    stored = result.summary.get("advice")
    if not isinstance(stored, Sequence) or isinstance(stored, str):
        return []
    return [e for e in stored if isinstance(e, Mapping) and e.get("state") in _STATES]


def _sentence(advice: Sequence[Mapping[str, Any]]) -> str:
    of = str(advice[0].get("of", ""))
    changes = [entry for entry in advice if entry["state"] == "change"]
    single = [entry for entry in changes if entry.get("setting") != "together"]
    if not single:
        return f"Of {of}: nothing that was measured is worth a change."
    told = ", ".join(map(_change, single))
    whole = next((entry for entry in changes if entry.get("setting") == "together"), None)
    gain = as_estimate(whole.get("gain")) if whole else None
    if whole is None or gain is None:
        return f"Of {of}: {told}."
    basis = _BASES.get(str(whole.get("basis")), "")
    return f"Of {of}: {told}. Together {number(gain.median)} times the rate, {basis}."


def _change(entry: Mapping[str, Any]) -> str:
    value = _value(entry, "value")
    return _name(entry) if value == "yes" else f"{_name(entry)} to {value}"


def _row(entry: Mapping[str, Any]) -> tuple[Entry, ...]:
    gain = as_estimate(entry.get("gain"))
    basis = _BASES.get(str(entry.get("basis")), "")
    times = Entry("", note=basis if entry["state"] == "change" else "")
    if gain is not None:
        note = ", ".join(filter(None, (between(gain), basis)))
        times = Entry(f"{number(gain.median)} ×", repr(gain.median), True, note)
    known, now = entry["state"] != "unknown", entry.get("now")
    changes = entry["state"] == "change"
    return (
        Entry(_name(entry), note=_STATES[entry["state"]]),
        Entry(
            _value(entry, "value") if known else "",
            note=f"now {_value(entry, 'now')}" if changes and now is not None else "",
        ),
        times,
        Entry(str(entry.get("evidence", ""))),
    )


def _how(advice: Sequence[Mapping[str, Any]]) -> str:
    said = (
        "Measured: trials of just these settings. Predicted by the model: the least of the "
        "capacities, only where the section “What if” shows that it holds. "
    )
    if any(entry.get("command") == "dataprep shard" for entry in advice):
        return (
            said + "iobench advise RUN_DIR --emit-config FILE writes what is advised of the data "
            "as a config that dataprep shard runs."
        )
    return said + "iobench advise RUN_DIR says the same in a terminal."


def _name(entry: Mapping[str, Any]) -> str:
    setting = str(entry.get("setting", ""))
    return NAMES.get(setting, setting)


def _value(entry: Mapping[str, Any], key: str) -> str:
    try:
        return value_words(str(entry.get("setting", "")), entry.get(key))
    except (KeyError, TypeError):  # of another version, or of nobody's
        return str(entry.get(key))
