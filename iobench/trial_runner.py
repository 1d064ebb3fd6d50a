"""Measure single trials on this host: find their data, and run each in a process of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dataprep.credentials import without_credentials
from iobench.child import reason
from iobench.child_process import run_isolated
from iobench.clock import since_1970_s
from iobench.config import BenchConfig
from iobench.data.existing import changed_shards
from iobench.display import Lines
from iobench.errors import Unavailable
from iobench.places import Places
from iobench.plan import places_of
from iobench.rundir import scratch_folder
from iobench.trial import Outcome, Status, Trial, TrialSpec


class TrialRunner:
    """Measures trials of one run, one after the other.

    Args:
        config: the config of the run.
        places: resolves the names of data, disks and stores.
        folder: the folder of the run; a trial that downloads data does so below it.
        display: shows the progress of a trial.
        fingerprints: what the data sets of the run were when they were first read. New ones are
            added.
    """

    def __init__(
        self,
        config: BenchConfig,
        places: Places,
        folder: Path,
        display: Lines,
        fingerprints: dict[str, str],
    ) -> None:
        self._config, self._places, self._folder = config, places, folder
        self._display, self._fingerprints = display, fingerprints

    def measure(
        self, spec: TrialSpec, begin: Callable[[], None] | None = None
    ) -> tuple[Trial, Outcome]:
        """Run one trial.

        ``begin`` is called when the trial is prepared. It returns when the measurement may begin,
        and raises TrialFailed if it may not.
        """
        names = places_of(spec)
        try:
            locations = {name: self._places.get(name) for name in names}
        except Unavailable as error:
            return not_measured(spec, "skipped", str(error)), Outcome({})
        except Exception as error:  # noqa: BLE001  anything from a third-party store
            return not_measured(spec, "failed", reason(error)), Outcome({})
        if why := changed_shards(self._fingerprints, locations):
            return not_measured(spec, "failed", why), Outcome({})
        # The wall clock for the date; a monotonic one for the duration.
        started_s, begun_s = time.time(), time.monotonic()
        downloads = spec.params.get("access") == "file"
        with scratch_folder(self._folder) if downloads else contextlib.nullcontext() as scratch:
            status, outcome, why = run_isolated(
                spec,
                locations,
                timeout_s=self._config.trial_timeout_s,
                environment=self._places.environment(names),
                progress=self._display.progress,
                sampling=self._config.sampling,
                scratch=scratch,
                begin=begin,
            )
        outcome = outcome or Outcome({})
        trial = replace(
            not_measured(spec, status, why),
            metrics=outcome.metrics,
            cold=outcome.cold,
            started_s=round(started_s, 3),
            seconds=round(time.monotonic() - begun_s, 3),
            time_zero_s=since_1970_s(outcome.origin_s) if outcome.origin_s is not None else 0.0,
        )
        return trial, outcome


def not_measured(spec: TrialSpec, status: Status, why: str) -> Trial:
    """A trial without figures; credentials are removed from the reason."""
    shown = without_credentials(why)
    return Trial(spec.id, spec.kind, spec.params, spec.repeat, status, reason=shown)
