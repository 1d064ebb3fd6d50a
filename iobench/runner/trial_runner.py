"""Measure single trials on this host: resolve their locations, and run each in its own process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dataprep.credentials import without_credentials
from iobench.clock import since_1970_s
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import location_names
from iobench.data.existing import changed_shards
from iobench.errors import Unavailable
from iobench.results.trial import Outcome, Status, Trial, TrialSpec
from iobench.runner.locations import Locations
from iobench.runner.progress import Lines
from iobench.runner.run_folder import scratch_folder
from iobench.trials.trial_process_main import describe_error
from iobench.trials.trial_timeout import run_with_timeout


class TrialRunner:
    """Measures trials of one run on this host, one after the other.

    Args:
        config: the config of the run.
        locations: finds the data, disk targets and stores that trials name.
        folder: the run folder. A trial that downloads data does so into a scratch folder below it.
        display: shows the progress of a trial.
        fingerprints: the fingerprint of each data set when the run first used it, by the name of
            the data. This object is changed: fingerprints of further data sets are added. If a
            fingerprint has changed, the trials on this data set fail.
    """

    def __init__(
        self,
        config: BenchConfig,
        locations: Locations,
        folder: Path,
        display: Lines,
        fingerprints: dict[str, str],
    ) -> None:
        self._config, self._locations, self._folder = config, locations, folder
        self._display, self._fingerprints = display, fingerprints

    def measure(
        self, spec: TrialSpec, begin: Callable[[], None] | None = None
    ) -> tuple[Trial, Outcome]:
        """Run one trial, and return it with its outcome.

        A trial is skipped if this machine lacks something that it needs. If the trial was not
        carried out, its outcome is empty.

        Args:
            spec: the trial.
            begin: is called when the trial is prepared. It returns when the measurement may begin,
                and raises TrialFailed if the trial must not be measured. If it is None, the
                measurement begins at once.
        """
        names = location_names(spec)
        try:
            locations = {name: self._locations.get(name) for name in names}
        except Unavailable as error:
            return trial_without_figures(spec, "skipped", str(error)), Outcome({})
        except Exception as error:  # noqa: BLE001  a third-party store may raise any error
            return trial_without_figures(spec, "failed", describe_error(error)), Outcome({})
        changed_data = changed_shards(self._fingerprints, locations)
        if changed_data:
            return trial_without_figures(spec, "failed", changed_data), Outcome({})
        # The wall clock gives the time of day. The monotonic clock gives the duration, since the
        # wall clock can be set while the trial runs.
        started_s = time.time()
        begun_s = time.monotonic()
        scratch: contextlib.AbstractContextManager[Path | None] = contextlib.nullcontext()
        if spec.params.get("access") == "file":
            scratch = scratch_folder(self._folder)
        with scratch as scratch_path:
            status, outcome, reason = run_with_timeout(
                spec,
                locations,
                timeout_s=self._config.trial_timeout_s,
                environment=self._locations.environment(names),
                progress=self._display.progress,
                sampling=self._config.sampling,
                scratch=scratch_path,
                begin=begin,
            )
        duration_s = time.monotonic() - begun_s
        if outcome is None:
            outcome = Outcome({})
        time_zero_s = 0.0
        if outcome.origin_s is not None:
            time_zero_s = since_1970_s(outcome.origin_s)
        trial = replace(
            trial_without_figures(spec, status, reason),
            metrics=outcome.metrics,
            cold=outcome.cold,
            started_s=round(started_s, 3),
            seconds=round(duration_s, 3),
            time_zero_s=time_zero_s,
        )
        return trial, outcome


def trial_without_figures(spec: TrialSpec, status: Status, reason: str) -> Trial:
    """A trial that has no figures. Credentials are removed from the reason."""
    return Trial(
        spec.id,
        spec.kind,
        spec.params,
        spec.repeat,
        status,
        reason=without_credentials(reason),
    )
