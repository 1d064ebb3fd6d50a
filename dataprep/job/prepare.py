"""Everything before the first shard: refuse, resume, or plan and write the plan down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import OutputConflict, StoreError
from dataprep.job.calibration import Convert
from dataprep.job.engine import Engine
from dataprep.job.jobfile import JobFile
from dataprep.job.lock import PATIENCE_S, Locks, Overtaken, create_job
from dataprep.job.parts import Part
from dataprep.job.planning import planned
from dataprep.job.remarks import bytes_to_write, lack_of_space
from dataprep.job.removal import note_removal, remove_split, splits_to_remove
from dataprep.job.request import Request, label_space_for, requested
from dataprep.job.retry import forget, located, require_limit, retries
from dataprep.job.split_plan import SplitPlan
from dataprep.job.stored import (
    lost_plans,
    refuse_leftovers,
    require_same,
    stored_job,
    stored_labels,
    stored_manifest,
    stored_plan,
)
from dataprep.job.worker import Outcome
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest
from dataprep.sources import Located, Source
from dataprep.stores import Store, open_store

Note = Callable[[str], None]
_ROUNDS = 4


@dataclass(frozen=True)
class Prepared:
    """A job that can begin: what is stored about it, by split."""

    config: ShardConfig
    source: Source
    store: Store
    label_space: LabelSpace
    jobs: Mapping[str, JobFile]
    plans: Mapping[str, SplitPlan]
    manifests: Mapping[str, Manifest]
    locks: Locks


def prepare(
    config: ShardConfig,
    *,
    overwrite: bool = False,
    retry_failed: bool = False,
    part: Part | None = None,
    takeover: bool = False,
    running: ExitStack,
    note: Note,
    engine: Engine,
) -> Prepared:
    """Check the request, then find the job that OUTPUT holds or write a new one down.

    The locks on its splits are released when ``running`` ends.

    Raises:
        ConfigError, SourceError, StoreError, OutputConflict: nothing was written.
    """
    request = requested(config, note)
    store = open_store(config.output, config.store)
    _ready(store)
    locks = running.enter_context(Locks(store, part, note, takeover))
    locks.take(request.splits)
    for _ in range(_ROUNDS):
        try:
            found = _found(request, store, locks, note, retry_failed, overwrite, engine)
            return found or _new(request, store, locks, note, overwrite, engine)
        except Overtaken:
            note(f"another run began in {store.uri} at this moment: looking at what it wrote")
            overwrite = False
    raise OutputConflict(
        f"{keys.LABELS} in {store.uri} is not the one that this source gives, and other runs write "
        "there: run again when they have begun, or use another --output"
    )


def _found(
    request: Request,
    store: Store,
    locks: Locks,
    note: Note,
    retry_failed: bool,
    overwrite: bool,
    engine: Engine,
) -> Prepared | None:
    """The job that is there already, if all of it is."""
    if overwrite:
        return None
    config, splits = request.config, request.splits
    found = {split: job for split in splits if (job := stored_job(store, split))}
    if retry_failed and set(found) != set(splits):
        raise OutputConflict(
            f"{store.uri} holds no job of split {min(set(splits) - set(found))!r}, and so nothing "
            "to retry: run without --retry-failed"
        )
    if not found:
        return None
    if lost := lost_plans(store, found):
        _put_back(request, store, found, lost, note, engine)
    label_space = stored_labels(store, found)
    plans = {split: stored_plan(store, split, found[split]) for split in found}
    again = {
        split: retries(store, job, plans[split], failed=retry_failed)
        for split, job in found.items()
    }
    require_same(store, config, found, request.listing, label_space, plans, again)
    if set(found) != set(splits):
        return None
    request.labelling.require_order(label_space, config.split, note)
    if any(again.values()):
        plans = {split: located(plan, request.listing) for split, plan in plans.items()}
    if retry_failed:
        require_limit(store, again, config.max_failures)
    for split, job in found.items() if retry_failed else ():
        forget(store, job, again[split], request.listing, note)
    manifests = {s: m for s in splits if (m := stored_manifest(store, s, found[s]))}
    note(f"resuming {store.uri}: same config, same source")
    return Prepared(config, request.source, store, label_space, found, plans, manifests, locks)


def _converting(request: Request, engine: Engine) -> Convert:
    config = request.config

    def convert(items: Sequence[Located]) -> Iterator[Outcome]:
        return engine.outcomes(request.source, items, config.image, config.sample_limit)

    return convert


def _ready(store: Store) -> None:
    try:
        store.prepare()
    except StoreError as error:
        error.exit_code = 2  # the request was wrong: nothing has been written
        raise


def _new(
    request: Request,
    store: Store,
    locks: Locks,
    note: Note,
    overwrite: bool,
    engine: Engine,
) -> Prepared:
    """Plan, remove what is to be overwritten, then write labels, plans and job files."""
    remove = splits_to_remove(store, request.splits) if overwrite else []
    locks.take(remove)
    for split in () if overwrite else request.splits:
        if stored_job(store, split) is None:
            refuse_leftovers(store, split)
    label_space = label_space_for(request, store, note, remove)
    engine.begin()  # worker processes start meanwhile
    made = planned(request, label_space, note, _converting(request, engine))
    _require_space(store, made.plans, request.config, note)
    if remove:
        note_removal(store, request.splits, remove, note)
    locks.check()
    try:
        for split in remove:
            remove_split(store, split)
        job_files = {split: job.to_json() for split, job in made.jobs.items()}
        patience_s = 0.0 if overwrite else PATIENCE_S
        create_job(store, made.labels, made.encoded, job_files, patience_s)
    except StoreError as error:
        error.exit_code = 2  # the first write shows whether writing is allowed at all
        raise
    jobs, plans = made.jobs, made.plans
    return Prepared(request.config, request.source, store, label_space, jobs, plans, {}, locks)


def _put_back(
    request: Request,
    store: Store,
    found: Mapping[str, JobFile],
    lost: Sequence[str],
    note: Note,
    engine: Engine,
) -> None:
    """Write labels and plans again that are gone, if they come out as the jobs know them."""
    note(f"gone from {store.uri}: {' and '.join(lost)}; planning again, to put that back")
    own = keys.LABELS in lost
    label_space = request.own_labels() if own else label_space_for(request, store, note)
    made = planned(request, label_space, note, _converting(request, engine))
    for split, job in found.items():
        digests = [hashlib.sha256(d).hexdigest() for d in (made.labels, made.encoded[split])]
        if digests != [job.labels_sha256, job.plan_sha256]:
            raise OutputConflict(
                f"gone from {store.uri}: {' and '.join(lost)}. This source and config give "
                "another: put the old one back, or start anew with --overwrite"
            )
    contents = {keys.LABELS: made.labels, **{keys.plan(s): d for s, d in made.encoded.items()}}
    for key in lost:
        store.create(key, contents[key])


def _require_space(
    store: Store, plans: Mapping[str, SplitPlan], config: ShardConfig, note: Note
) -> None:
    if (lacking := lack_of_space(store, plans, config)) is not None:
        raise lacking
    shards = sum(part.shard_count for part in plans.values())
    needed = bytes_to_write(plans, config)
    each = needed / len(config.format) / shards
    note(
        f"plan: {counted(shards, 'shard')} a format, about {each / 1e6:,.1f} MB each, "
        f"{needed / 1e6:,.0f} MB in all"
    )
