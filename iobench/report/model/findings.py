"""PURE. What was found: the one to begin with, and all others."""

from __future__ import annotations

from iobench.report.model.numbers import percent
from iobench.report.model.shapes import Badge, Beginning, Definition, Definitions, Section, Tone
from iobench.result import Finding, Result

_TONES: dict[str, Tone] = {"problem": "alert", "warning": "caution", "info": "plain"}
_ORDER = {"problem": 0, "warning": 1, "info": 2}
_QUALIFYING = (
    *("unfinished", "stood-still", "few-repeats", "not-shown-cold", "not-all-warm", "ranks-differ"),
    *("instrumentation", "emulated"),
)
_WIDE = 0.5
"""Of a share: where its interval begins below so much of it, that is said."""

_SURE = "nothing was found that qualifies it"
_BEGIN, _LIMITS = "Begin here", "What limits"


def beginning(result: Result) -> Beginning | None:
    """The primary finding; None where there is none, as in results of older versions."""
    first = next((finding for finding in result.findings if finding.primary), None)
    if first is None:
        return None
    return Beginning(
        label=_LIMITS if first.severity == "info" else _BEGIN,
        badge=_badge(first),
        title=_title(first),
        evidence=first.evidence,
        sure=_sure(result, first),
        threshold=first.threshold,
        advice=first.advice,
    )


def section(result: Result) -> Section | None:
    """All but the primary one, gravest first."""
    others = [finding for finding in result.findings if not finding.primary]
    if not others:
        return None
    ranked = sorted(others, key=lambda finding: _ORDER.get(finding.severity, 3))
    title = "Other findings" if len(others) < len(result.findings) else "Findings"
    return Section("findings", title, (Definitions(tuple(map(_entry, ranked))),))


def _sure(result: Result, first: Finding) -> str:
    """How far its figures carry: their interval, and what was found of how they came about."""
    told = {finding.code: finding.evidence for finding in result.findings}
    said = [told[code] for code in _QUALIFYING if code in told]
    share, low = first.share, first.share_low
    if share and low is not None and low < share * _WIDE:
        said.insert(
            0,
            f"repeats differ: it may take as little as {percent(low)}. More repeats, with nothing "
            "beside them, tell it closer",
        )
    return "; ".join(said) or _SURE


def _entry(finding: Finding) -> Definition:
    why = f"{finding.code}: {finding.threshold}" if finding.threshold else ""
    return Definition(
        _title(finding), finding.evidence, finding.advice, badges=(_badge(finding),), note=why
    )


def _title(finding: Finding) -> str:
    """What its rule says; older results have its code alone."""
    return finding.title or finding.code.replace("-", " ").replace("_", " ")


def _badge(finding: Finding) -> Badge:
    return Badge(finding.severity, _TONES.get(finding.severity, "plain"))
