"""Published figures have commands that exist, a page with verdicts, and can be measured."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import published
from benchmarks.published import judged, page
from benchmarks.published_claims import CLAIMS, ROOT, Claim, Figures, benchmark
from benchmarks.workplace import Workplace
from dataprep.config.files import parse_settings
from dataprep.drawn import draw_tree
from iobench.config.benchmark import load
from iobench.servers.moto_server import MotoServer


def figures_for(claim: Claim, value: float) -> Figures:
    """Return figures for which each ratio of a claim's rules is ``value``."""
    ratios = [rule.of.partition("/") for rule in claim.rules]
    above, below = ({ratio[side] for ratio in ratios} for side in (0, 2))
    names = {*claim.points, *above, *below} - {""}
    points: dict[str, Sequence[float]] = {
        name: [1, 2, 3] if name in below else [value, 2 * value, 3 * value] for name in names
    }
    return dict.fromkeys(claim.metrics, points)


def test_the_page_has_a_verdict_for_each_claim() -> None:
    """A claim is judged by its rule, or the page says why there are no figures."""
    figures = {claim.name: figures_for(claim, 20) for claim in CLAIMS if claim.measure}
    text = page(figures, 1000, 6).replace(" \\\n    ", " ")
    for number, claim in enumerate(CLAIMS, 1):
        (row,) = [row for row in text.splitlines() if row.startswith(f"| {number} | ")]
        verdict = row.split(" | ")[4].removesuffix(" |")
        measured = ("holds", "holds in part", "does not hold")
        assert verdict in (measured if claim.measure else ("not measured here",))
        assert claim.command in text
        if verdict != "holds":
            assert claim.why in text
    assert "not run yet" in page({}, 1000, 6)


def test_a_claim_holds_in_part_if_one_of_its_rules_fails() -> None:
    """The rule applies to the interval; the points that fail it are named."""
    advice = CLAIMS[-1]
    assert judged(advice, figures_for(advice, 20)).verdict == "holds"
    failing = judged(advice, figures_for(advice, 3))
    assert failing.verdict == "does not hold"
    assert failing.failed == ["shards/photos"]
    (workers,) = [claim for claim in CLAIMS if claim.name == "workers"]
    rates = {"one": [1.0] * 6, "two": [2.0] * 6, "four": [1.9] * 6, "seven": [1.8] * 6}
    in_part = judged(workers, {"samples_per_s": rates, "au_mlperf": rates})
    assert in_part.verdict == "holds in part"
    assert in_part.failed == ["four/two", "seven/four"]


def test_figures_are_written_out() -> None:
    """A table has no powers of ten."""
    figures = {claim.name: figures_for(claim, 1234) for claim in CLAIMS if claim.measure}
    assert "e+0" not in page(figures, 1000, 6)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_commands_are_accepted(claim: Claim) -> None:
    """The configs and keys of each command exist."""
    arguments = shlex.split(claim.command)
    if "configs" in claim.command:
        (path,) = [word for word in arguments if word.startswith("configs/")]
        load(ROOT / path, parse_settings(arguments[arguments.index(path) + 2 :: 2]))
    elif arguments[0] == "python":
        assert (ROOT / arguments[1]).exists()


@pytest.mark.slow
@pytest.mark.process
def test_claims_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims are measured from a store, and by a run that a second call does not repeat."""
    photos = draw_tree(tmp_path / "photos", images=120, classes=3).root
    for name, value in MotoServer.ENVIRONMENT.items():
        # The benchmark sets these variables too; monkeypatch removes them after the test.
        monkeypatch.setenv(name, value)
    requests = ["published", str(photos), "--only", "shares", "--repeats", "1"]
    requests += ["--folder", str(tmp_path / "kept"), "--page", str(tmp_path / "page.md")]
    monkeypatch.setattr("sys.argv", requests)
    published.main()
    assert "all shards / a quarter of the shards" in (tmp_path / "page.md").read_text()
    (sleep,) = [claim for claim in CLAIMS if claim.name == "sleep"]
    command = sleep.command.replace('seconds":9', 'seconds":0.3')
    quick = replace(sleep, command=command)
    workplace = Workplace(tmp_path / "kept", photos, 120)
    first = benchmark(quick, workplace, 1)
    assert all(len(rates) == 1 for rates in first["samples_per_s"].values())
    assert benchmark(quick, workplace, 1) == first
