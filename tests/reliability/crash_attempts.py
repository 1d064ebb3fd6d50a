"""Jobs over samples that crash, hang or are killed: what is wrong with what comes out of each."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dataprep.stores import Store, StoreOptions, open_store
from iobench.s3_server import MotoServer
from tests.commandline import Running, dataprep, objects, wait_until
from tests.reliability.crash_jobs import (
    FAULTS,
    Place,
    Reference,
    arguments,
    faults,
    processes,
    run,
    stopped_for_memory,
    untold,
)


def placed(place: Place, chance: random.Random, most: int = 4) -> dict[str, str]:
    """Some samples, the first and the last of the source among them at times, and their faults."""
    edges = [place.names[0], place.names[-1]] if chance.random() < 0.3 else []
    names = {*chance.sample(place.names, chance.randint(1, most)), *edges}
    return {name: chance.choice(FAULTS) for name in sorted(names)}


def crash(place: Place, how: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """A job some of whose samples crash: what is wrong with what came out."""
    source, output = place.marked(how), place.new()
    expected = Reference(place).of(source)
    ended = run(place, place.notes, *arguments(source, output, *options))
    if ended.last.code != 0:
        return [f"ended with {ended.last.code}: {ended.last.err[-400:]}"]
    if ended.deaths > 1:
        return [f"died {ended.deaths} times"]
    return faults(objects(output), expected, how)


def killed_once(place: Place, chance: random.Random, options: Sequence[str]) -> list[str]:
    """A process that is killed from outside over sound samples: not one of them fails."""
    how = dict.fromkeys(chance.sample(place.names, 2), "once")
    source, output = place.marked(how), place.new()
    shutil.rmtree(place.notes)
    ended = run(place, place.notes, *arguments(source, output, *options))
    if ended.last.code != 0:
        return [f"ended with {ended.last.code}: {ended.last.err[-400:]}"]
    return faults(objects(output), Reference(place).of(source), {})


def killed_at_random(place: Place, chance: random.Random, options: Sequence[str]) -> list[str]:
    """A worker, or the program, killed by somebody else at any moment, then run again."""
    source, output = place.root / "photos", place.new()
    given = arguments(source, output, *options)
    with Running(*given, env=place.environment("")) as running:
        time.sleep(chance.uniform(1.0, 4.0))
        workers = running.workers()
        victim = chance.choice(workers) if workers else running.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        running.finish()
    ended = run(place, "", *given)
    if ended.last.code != 0:
        return [f"ended with {ended.last.code}: {ended.last.err[-400:]}"]
    return faults(objects(output), Reference(place).of(source), {})


def memory(place: Place, chance: random.Random, options: Sequence[str]) -> list[str]:
    """A sample over which every process is killed: the job stops, names it, and goes on later."""
    name = chance.choice(place.names)
    source, output = place.marked({name: "SIGKILL"}), place.new()
    given = arguments(source, output, *options)
    ended = run(place, place.notes, *given)
    return stopped_for_memory(place, ended, name, given, source, output)


def hang(place: Place, chance: random.Random, what: str) -> list[str]:
    """A sample that never comes back, the interpreter held: named, or failed where so wanted."""
    name = chance.choice(place.names)
    source, output = place.marked({name: "hang"}), place.new()
    options = (*processes(2), "--set", "dask.sample_timeout_s=3", "--set", f"hung_samples={what}")
    given = arguments(source, output, *options)
    # Planned where nothing hangs: by threads of the program nobody is watched.
    with Running(*given, env=place.environment("")) as running:
        wait_until((output / "train.job.json").exists, "the job to begin")
        os.killpg(running.pid, signal.SIGKILL)
    done = dataprep(*given, env=place.environment(place.notes))
    if what == "stop":
        complaint = " ".join(done.complaints)
        told = done.code == 1 and name in complaint and "longer than 3 s" in complaint
        return [] if told else [f"ended with {done.code}: {done.err[-400:]}"]
    if done.code != 0:
        return [f"ended with {done.code}: {done.err[-400:]}"]
    return untold((output / "train.samples.parquet").read_bytes(), {name: "hang"})


def retried(place: Place, chance: random.Random, options: Sequence[str]) -> list[str]:
    """Failed samples tried again: where they crash still, and where the decoder was mended."""
    how = placed(place, chance)
    source, output = place.marked(how), place.new()
    given = arguments(source, output, *options)
    run(place, place.notes, *given)
    expected = Reference(place).of(source)
    again = dataprep(*given, "--retry-failed", env=place.environment(place.notes))
    if again.code != 0:
        return [f"died, or stopped, with {again.code}: {again.err[-400:]}"]
    wrong = faults(_stayed(output), expected, how)
    mended = dataprep(*given, "--retry-failed", env=place.environment(""))
    counts = json.loads((output / "train.manifest.json").read_bytes())["samples"]
    if mended.code != 0 or counts["written"] != place.images:
        wrong.append(f"mended: {mended.code}, {counts}")
    return wrong


def _stayed(output: Path) -> dict[str, bytes]:
    return {k: v for k, v in objects(output).items() if not k.endswith(".retried.json")}


def crash_s3(
    place: Place,
    chance: random.Random,
    options: Sequence[str],
    new_store: Callable[[], tuple[Store, str]],
) -> list[str]:
    """As ``crash``, into an object store."""
    store, endpoint = new_store()
    how = placed(place, chance)
    source = place.marked(how)
    expected = Reference(place).of(source)
    more = (*options, "--endpoint-url", endpoint)
    ended = run(place, place.notes, *arguments(source, store.uri, *more))
    if ended.last.code != 0 or ended.deaths > 1:
        return [f"{ended.deaths} deaths, {ended.last.code}: {ended.last.err[-400:]}"]
    found = {key: data for key, data in objects(store).items() if not key.startswith("leases/")}
    return faults(found, expected, how)


@contextlib.contextmanager
def s3_stores() -> Iterator[Callable[[], tuple[Store, str]]]:
    """Stores at one S3 server, a bucket each, and its address."""
    with MotoServer() as server:
        os.environ.update(MotoServer.ENVIRONMENT)

        def store() -> tuple[Store, str]:
            bucket = f"crashes-{secrets.token_hex(4)}"
            server.create_bucket(bucket)
            uri = f"s3://{bucket}/out"
            return open_store(uri, StoreOptions(endpoint_url=server.url)), server.url

        yield store
