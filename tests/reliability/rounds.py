"""One round: a command is killed, run again until it ends, and what is left is looked at."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.commandline import Finished, Running, wait_until
from tests.reliability.kills import KILLS, may_end_with
from tests.reliability.moments import Moment, any_time
from tests.reliability.places import Place

ORPHANS_S = 30.0
"""How long after its driver's end a process may be seen; it takes about a second."""
_TRIES = 4


@dataclass(frozen=True)
class Job:
    """The command that is killed, those that then end its work, and what lies there beforehand.

    ``usual_s`` is about how long the first takes where nothing happens to it.
    """

    command: Sequence[str]
    then: Sequence[Sequence[str]] = ()
    content: Mapping[str, bytes] | None = None
    usual_s: float = 0.0


@dataclass
class Seen:
    """What became of one round.

    ``problems`` says what was lost, wrong or left behind. ``died_s`` is how long other processes
    were seen after the driver was gone, ``end_s`` how long it took from the signal to the end.
    """

    problems: list[str] = field(default_factory=list)
    kills: int = 0
    codes: list[int] = field(default_factory=list)
    died_s: float = 0.0
    end_s: float = 0.0


class Rounds:
    """Runs commands at one place; ``folder`` is for what they keep outside of it."""

    def __init__(self, place: Place, folder: Path, environment: Mapping[str, str]) -> None:
        self.place, self._folder = place, folder
        self._environment = environment
        self._renew()

    def undisturbed(self, job: Job) -> tuple[dict[str, object], dict[str, bytes], float]:
        """What a command makes, comparable and as it is, and how many seconds it takes."""
        self.place.renew(job.content)
        self._renew()
        began_s = time.monotonic()
        done = self.run(job.command)
        took_s = time.monotonic() - began_s
        if done.code:
            raise RuntimeError(f"{' '.join(job.command)}: {done.code}\n{done.err}")
        if left := self.leftovers():
            raise RuntimeError(f"an undisturbed run leaves {left}")
        return self.place.made(), self.place.raw(), took_s

    def disturbed(
        self,
        job: Job,
        kill: str,
        moments: Sequence[Moment],
        reference: Mapping[str, object],
        rng: random.Random,
    ) -> Seen:
        """Kill the command at each of the moments, run anew each time; then run those that follow.

        No kill is counted where the command ended before its moment; where none was, the round
        is begun anew with another.
        """
        seen = Seen()
        for at in (moments, *([any_time(rng)] for _ in range(_TRIES))):
            self.place.renew(job.content)
            self._renew()
            for moment in at:
                self._kill(job, kill, moment, seen, rng)
            if seen.kills or seen.problems:
                break
        for command in job.then:
            done = self.run(command)
            if done.code:
                seen.problems.append(f"run again, {command[0]} ends with {done.code}: {done.err}")
                return seen
            if "waiting to see whether it lives" in done.err:
                seen.problems.append("run again, it waits for a lease of the dead")
        if self.place.made() != reference:
            seen.problems.append(f"other bytes: {_differing(self.place.made(), reference)}")
        seen.problems.extend(f"left behind: {name}" for name in self.leftovers())
        return seen

    def resumed_elsewhere(
        self, job: Job, command: Sequence[str], reference: Mapping[str, object]
    ) -> tuple[list[str], float]:
        """Kill a job at its first receipt, then run ``command`` as if on another machine.

        What was wrong, and for how many seconds the command ran.
        """
        self.place.renew()
        self._renew()
        seen = Seen()
        moment = Moment(prefix="receipts/", count=1)
        self._kill(job, "SIGKILL to the group", moment, seen, random.Random(0))
        began_s = time.monotonic()
        done = self.run(command, "tests.reliability.elsewhere")
        took_s = time.monotonic() - began_s
        if "waiting to see whether it lives, at most 1" not in done.err:
            seen.problems.append(f"does not say that it waits: {done.err}")
        if done.code or self.place.made() != reference:
            seen.problems.append(f"exit code {done.code}, or other bytes: {done.err}")
        seen.problems.extend(f"left behind: {name}" for name in self.leftovers())
        return seen.problems, took_s

    def run(self, command: Sequence[str], program: str = "dataprep") -> Finished:
        """To its end."""
        with self._start(command, program) as running:
            return running.finish()

    def leftovers(self) -> list[str]:
        """At the place, in the folder for temporary files, and among kept indexes."""
        temporary = [str(path.relative_to(self._temporary)) for path in self._temporary.rglob("*")]
        kept = [str(path) for path in (self._folder / "cache").rglob("*.partial")]
        return self.place.leftovers() + temporary + kept

    def _kill(
        self,
        job: Job,
        kill: str,
        moment: Moment,
        seen: Seen,
        rng: random.Random,
    ) -> None:
        with self._start(job.command) as running:
            if not moment.wait(running, self.place, job.usual_s):
                return
            seen.kills += 1
            struck_s = time.monotonic()
            KILLS[kill](running, rng)
            wait_until(lambda: running.ended, f"the end after {kill} at {moment}")
            ended_s = time.monotonic()
            seen.end_s = max(seen.end_s, ended_s - struck_s)
            while (left := running.survivors()) and time.monotonic() - ended_s < ORPHANS_S:
                time.sleep(0.05)
            seen.died_s = max(seen.died_s, time.monotonic() - ended_s)
            if left:
                running.send_group(signal.SIGKILL)
            done = running.finish()
        seen.codes.append(done.code)
        seen.problems.extend(f"still runs after {ORPHANS_S:.0f} s: {name}" for name in left)
        seen.problems.extend(self._told(done, kill, moment))

    def _told(self, done: Finished, kill: str, moment: Moment) -> list[str]:
        """What is wrong with how a disturbed command ended."""
        found = []
        if done.code not in may_end_with(kill):
            found.append(f"{kill} at {moment}: exit code {done.code}: {done.err[-2000:]}")
        if "Traceback" in done.err or "Exception ignored" in done.err:
            found.append(f"{kill} at {moment}: a traceback: {done.err[-2000:]}")
        if done.code == 130 and "the same command resumes" not in done.err:
            found.append(f"{kill} at {moment}: does not say how to go on: {done.err[-2000:]}")
        if done.code == 1 and len(done.complaints) != 1:
            found.append(f"{kill} at {moment}: {len(done.complaints)} complaints")
        if kill in ("Ctrl-C", "SIGTERM to the driver"):
            found.extend(f"{kill} at {moment} leaves {name}" for name in self.leftovers())
        return found

    def _start(self, command: Sequence[str], program: str = "dataprep") -> Running:
        name, *arguments = command
        given = [argument.replace("OUTPUT", self.place.uri) for argument in arguments]
        return Running(
            name,
            *given,
            *self.place.arguments,
            env={
                **os.environ,
                **self._environment,
                "TMPDIR": str(self._temporary),
                "XDG_CACHE_HOME": str(self._folder / "cache"),
            },
            program=program,
        )

    def _renew(self) -> None:
        self._temporary = self._folder / "temporary"
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir(parents=True)


def _differing(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    return sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key))
