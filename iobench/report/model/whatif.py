"""PURE. What if: capacities, and what their least predicts beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.advice.words import model_words
from iobench.report.model.curves import MARKS
from iobench.report.model.drawings import Curve, Curves, Point, Tip
from iobench.report.model.numbers import as_estimate, between, is_number, number, percent
from iobench.report.model.params import joined
from iobench.report.model.shapes import Block, Chart, Entry, Key, Section, Table, Words
from iobench.report.model.tips import tip
from iobench.result import Result
from iobench.stats import Estimate

_UNIT = "samples/s"
_ALLOWED = 0.10
_KINDS = {
    "loop": "training loop",
    "loader": "loader alone",
    "workers": "left out of its own law",
    "store": "reading a store",
}
_NOTE = (
    "Each part is measured apart: the loop on resident samples, decoding by workers from a warm "
    "cache, reading alone. With workers the parts run side by side, and the least of their "
    "capacities is predicted; without any, their seconds add. One after the other is the rate if "
    "nothing ran side by side: the lower bound. What was fitted is not what it is tested on."
)
_TOLD = ("loop", "loader", "data", "input", "workers", "batch_size", "devices")
_LAWS = {
    "proportional": "proportional to the workers",
    "processors": "proportional up to the processors",
    "capped": "proportional to the workers",
    "amdahl": "Amdahl",
    "usl": "Gunther’s scalability law",
}


def section(result: Result) -> Section | None:
    """Whether the model holds, predictions beside measurements, capacities; None without any."""
    model = result.summary.get("whatif")
    if not isinstance(model, Mapping) or not model.get("capacities"):
        return None
    predictions = [p for p in model.get("predictions", ()) if as_estimate(p.get("measured"))]
    blocks: list[Block] = [Words((model_words(model), _NOTE))]
    tested = [p for p in predictions if p.get("held_out") and as_estimate(p.get("predicted"))]
    if tested:
        blocks.append(_chart(tested))
    if predictions:
        blocks.append(_table(predictions))
    blocks += [*_lifted(model, predictions), _scopes(model), _capacities(model)]
    return Section("whatif", "What if", tuple(blocks))


def _chart(tested: Sequence[Mapping[str, Any]]) -> Chart:
    scopes = list(dict.fromkeys(str(p["scope"]) for p in tested))
    pairs = [(as_estimate(p["predicted"]), as_estimate(p["measured"])) for p in tested]
    values = [e.median for pair in pairs for e in pair if e is not None]
    low, high = min(values), max(values)
    curves = [_guide(0, low, high, 1.0), *(_guide(1, low, high, 1 + off) for off in (-0.1, 0.1))]
    keys = []
    for colour, scope in enumerate(scopes):
        points = sorted(_points(tested, scope), key=lambda point: point.x)
        curves.append(Curve(scope, colour, tuple(points), joined=False))
        keys.append(Key(scope, MARKS[colour % len(MARKS)], colour))
    drawing = Curves(
        f"measured, {_UNIT}",
        f"predicted, {_UNIT}",
        tuple(curves),
        log_x=high / max(low, 1e-9) > 8,
        log_y=high / max(low, 1e-9) > 8,
        zero=False,
    )
    note = (
        "On the line they agree; dashed lines are 10 % off. Whiskers are what a prediction may be."
    )
    return Chart("Predicted against measured", drawing, tuple(keys), note)


def _guide(colour: int, low: float, high: float, times: float) -> Curve:
    ends = tuple(Point(x, x * times, x * times, x * times, Tip("", "")) for x in (low, high))
    return Curve("", colour, ends, guide=True)


def _points(tested: Sequence[Mapping[str, Any]], scope: str) -> Iterator[Point]:
    for p in tested:
        predicted, measured = as_estimate(p["predicted"]), as_estimate(p["measured"])
        if str(p["scope"]) == scope and predicted is not None and measured is not None:
            said = f"{_configuration(p)}: measured {number(measured.median)}"
            shown = tip(said, predicted, _UNIT, _error(p))
            yield Point(measured.median, predicted.median, predicted.low, predicted.high, shown)


def _table(predictions: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        *("configuration", f"predicted, {_UNIT}", "limited by"),
        *(f"measured, {_UNIT}", "error", "one after the other"),
    )
    rows = tuple(
        (
            Entry(_configuration(p), note=_tests(p)),
            _rate(as_estimate(p.get("predicted"))),
            Entry(str(p.get("limited_by", ""))),
            _rate(as_estimate(p.get("measured"))),
            Entry(_error(p), repr(p.get("error")), True, _verdict(p)),
            _plain(p.get("if_serial")),
        )
        for p in predictions
    )
    return Table("Predicted and measured", columns, rows, folded=len(rows) > 12)


def _tests(p: Mapping[str, Any]) -> str:
    kind = _KINDS.get(str(p.get("kind")), str(p.get("kind", "")))
    missing = p.get("missing") or ()
    return f"{kind}; not measured: {', '.join(map(str, missing))}" if missing else kind


def _configuration(p: Mapping[str, Any]) -> str:
    told = p.get("configuration")
    params = dict(told) if isinstance(told, Mapping) else {}
    if params.get("input") == "decode":
        params["input"] = "from memory"
    return joined({key: value for key, value in params.items() if value != ""}, _TOLD)


def _error(p: Mapping[str, Any]) -> str:
    error = p.get("error")
    return f"{'+' if error > 0 else ''}{percent(error)}" if is_number(error) else ""


def _verdict(p: Mapping[str, Any]) -> str:
    error = p.get("error")
    if not is_number(error):
        return "no prediction"
    if not p.get("held_out"):
        return "a bound, no test"
    return "" if abs(error) <= _ALLOWED else "above 10 %"


def _lifted(
    model: Mapping[str, Any], predictions: Sequence[Mapping[str, Any]]
) -> tuple[Table, ...]:
    """What the next limit would be; of loops for which the model holds."""
    holds = {s.get("scope") for s in model.get("scopes", ()) if s.get("holds")}
    told = [p for p in predictions if p.get("lifted") and p.get("scope") in holds]
    rows = tuple(
        (
            Entry(_configuration(p)),
            Entry(str(p.get("limited_by", ""))),
            Entry(str(p["lifted"].get("limited_by", ""))),
            _rate(as_estimate(p["lifted"].get("predicted"))),
            Entry(f"{number(times)} ×", repr(times), True)
            if is_number(times := p["lifted"].get("times"))
            else Entry(""),
        )
        for p in told
    )
    columns = ("configuration", "limited by", "then by", f"at {_UNIT}", "times the rate")
    return (Table("If that part were no limit", columns, rows),) if rows else ()


def _scopes(model: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            Entry(str(scope.get("scope", ""))),
            Entry("yes" if scope.get("holds") else "no"),
            Entry(number(scope.get("checks", 0)), None, True),
            Entry(percent(error) if is_number(error := scope.get("largest_error")) else ""),
            Entry(str(scope.get("why", ""))),
        )
        for scope in model.get("scopes", ())
    )
    columns = ("of", "the model holds", "tests", "largest error", "why not")
    return Table("Where the model holds", columns, rows)


def _capacities(model: Mapping[str, Any]) -> Table:
    rows = tuple(_capacity(entry) for entry in model["capacities"])
    columns = ("part", "of", _UNIT, "how it was had")
    return Table("Capacities", columns, rows, folded=len(rows) > 12)


def _capacity(entry: Mapping[str, Any]) -> tuple[Entry, ...]:
    named = Entry(str(entry.get("part", ""))), Entry(str(entry.get("of", "")))
    if "first_byte_s" in entry:
        return (*named, Entry(""), Entry(_of_objects(entry)))
    if (rate := as_estimate(entry.get("samples_per_s"))) is not None:
        return (*named, _rate(rate), Entry("measured"))
    points = [p for p in entry.get("points", ()) if as_estimate(p.get("samples_per_s"))]
    rates = [(p["workers"], as_estimate(p["samples_per_s"])) for p in points]
    said = ", ".join(f"{workers}: {number(e.median)}" for workers, e in rates if e is not None)
    return (*named, Entry(said, note="by workers"), Entry(_law(entry.get("law"))))


def _law(law: Any) -> str:
    if not isinstance(law, Mapping):
        return "measured"
    said = _LAWS.get(str(law.get("form")), str(law.get("form")))
    if is_number(cap := law.get("cap")):
        said += f", up to {number(cap)}"
    if is_number(error := law.get("error")):
        return f"{said}; {percent(error)} off at most where a point is left out"
    return f"{said}; of fewer than three points"


def _of_objects(entry: Mapping[str, Any]) -> str:
    stream, shared = entry.get("s_per_byte") or 0.0, entry.get("shared_s_per_byte") or 0.0
    parts = [f"first byte after {number(entry['first_byte_s'] * 1e3)} ms"]
    parts += [f"{number(1e-6 / stream)} MB/s a connection"] if stream else []
    parts += [f"{number(1e-6 / shared)} MB/s for all of them"] if shared else []
    if request := entry.get("request_s"):
        parts.append(f"{number(1 / request)} requests/s at most")
    return ", ".join(parts)


def _rate(found: Estimate | None) -> Entry:
    if found is None:
        return Entry("")
    interval = between(found) if found.low < found.high else ""
    return Entry(number(found.median), repr(found.median), True, interval)


def _plain(value: Any) -> Entry:
    return Entry(number(value), repr(value), True) if is_number(value) else Entry("")
