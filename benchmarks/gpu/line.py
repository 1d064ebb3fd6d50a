"""Print a summary of a part of the kit in one line, also if the part has failed or was stopped.

``python -m benchmarks.gpu.line NAME OUT HOW SECONDS`` prints ``NAME: HOW, SECONDS s: FIGURES``. The
figures come from the files that the part has written below ``OUT`` so far. If there are none, the
line ends with the reason in the log of the part.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.loader_scaling import LoaderRate
from benchmarks.shard_scaling import JobTimes
from dataprep.errors import DataprepError
from iobench.analysis.analyse import summarised
from iobench.results.result import Result
from iobench.runner.run_folder import holds_run, read, read_tables

_READINGS = {
    "utilisation_share": ("utilisation", 100.0, "%"),
    "power_w": ("power", 1.0, "W"),
    "sm_clock_mhz": ("clock", 1.0, "MHz"),
    "memory_bytes": ("memory", 1e-9, "GB"),
}
"""The readings of a GPU that are shown, each with its name, factor and unit."""

_PYTHON_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Failed): \S.*")


def figures(name: str, out: Path) -> str:
    """Return the figures of a part; empty if it has written none.

    Args:
        name: the name of the part.
        out: the folder of all results.
    """
    folder, file = out / name, out / f"{name}.json"
    if holds_run(folder):
        return "; ".join(_of_run(name, folder))
    if not file.exists():
        return ""
    content = json.loads(file.read_text())
    if name == "shard":
        return _of_jobs([JobTimes(**job) for job in content["jobs"]])
    return _of_loaders([LoaderRate(**rate) for rate in content["rates"]])


def _of_jobs(jobs: list[JobTimes]) -> str:
    """Return the rate of each job, and how many times as fast as the first job it is."""
    first_rate = jobs[0].images_per_s
    rates = []
    for job in jobs:
        speedup = job.images_per_s / first_rate
        rates.append(f"{job.workers}: {job.images_per_s:,.0f} ({speedup:.1f}x)")
    return f"img/s by workers {', '.join(rates)}"


def _of_loaders(rates: list[LoaderRate]) -> str:
    """Return the rates of all points, by type of batches and by threads or workers."""
    series: dict[str, list[str]] = {}
    for rate in rates:
        point = f"{rate.count}: {rate.samples_per_s:,.0f}"
        series.setdefault(f"{rate.dtype} by {rate.by}", []).append(point)
    return "img/s " + "; ".join(f"{title} {', '.join(points)}" for title, points in series.items())


def _of_run(name: str, folder: Path) -> Iterator[str]:
    """Yield the figures of each loop, the trials without figures, and the readings of a GPU."""
    result = read(folder)
    if not result.summary:  # A run that was killed has only its log.
        result = summarised(result)
    if name == "ladder":
        yield from _rungs(result)
    elif name in ("watch", "replay"):
        yield str(result.summary.get("verdict", "no verdict"))
    else:
        for trial in result.trials:
            rate = trial.metrics.get("samples_per_s")
            if rate is not None:
                yield f"{trial.params['group']}, {trial.params['input']} {rate:,.0f} img/s"
    reasons = Counter(
        f"{trial.status}: {trial.reason}" for trial in result.trials if trial.status != "done"
    )
    for reason, count in reasons.items():
        yield f"{count} {reason}"
    if name == "device" and result.trials:
        yield from _readings(folder, float(result.trials[0].metrics.get("seconds", 0.0)))


def _rungs(result: Result) -> Iterator[str]:
    """Yield the seconds for 1,000 samples on each rung that was measured."""
    for entry in result.summary.get("ladder", ()):
        rungs = []
        for rung in entry["rungs"]:
            sample_s = rung["seconds_per_sample"]["median"]
            rungs.append(f"{rung['words']} {sample_s * 1000:.3g}")
        yield f"s/1,000 samples: {', '.join(rungs)}"


def _readings(folder: Path, seconds: float) -> Iterator[str]:
    """Yield the mean of each reading of the first GPU during the ``seconds`` that count."""
    _, samples = read_tables(folder)
    samples = samples[samples["time_s"].between(0, seconds)]
    for key, (title, factor, unit) in _READINGS.items():
        column = f"gpu.0_{key}"
        if column in samples.columns and samples[column].notna().any():
            yield f"{title} {samples[column].mean() * factor:,.0f} {unit}"


def reason(log: Path) -> str:
    """Return the last error of Python in a log, or else the last line that has a word.

    The result is empty if there is no such line.
    """
    text = log.read_text(errors="replace") if log.exists() else ""
    errors = _PYTHON_ERROR.findall(text)
    if errors:
        return str(errors[-1])
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    return lines[-1] if lines else ""


def main() -> None:
    """Print the line of a part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.line")
    parser.add_argument("name", help="the part")
    parser.add_argument("out", type=Path, help="the folder of all results")
    parser.add_argument("how", help="how the part ended")
    parser.add_argument("seconds", help="how long it took")
    options = parser.parse_args()
    try:
        summary = figures(options.name, options.out)
    except DataprepError as error:
        summary = str(error)
    summary = summary or reason(options.out / f"{options.name}.log")
    print(f"{options.name}: {options.how}, {options.seconds} s: {summary}")


if __name__ == "__main__":
    main()
