"""A few samples made into records in memory, timed: what ``plan`` measures."""

from __future__ import annotations

import secrets
import time

from dataprep import keys
from dataprep.estimate import pick, sample_size
from dataprep.forecast import Trial
from dataprep.job.plans import label_offsets, sample_rows
from dataprep.job.request import Request
from dataprep.job.worker import Item, Progress, ShardTask, make_shard
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.receipt import Receipt
from dataprep.stores.memory import MemoryStore
from dataprep.versions import determining

LEAST_SAMPLES = 200
_WARM = 2


def timed_trial(
    request: Request,
    label_space: LabelSpace,
    boxes: BoxColumns | None = None,
) -> Trial:
    """Make one shard in memory out of samples of every size, as a worker of the job would.

    Libraries are loaded and connections made before the clock starts. At least 200 samples, or
    all, and as many as the sizes of records are learnt from. ``boxes`` has a row for each of the
    listing.

    Raises:
        SourceChanged, StoreError: the source could not be read.
    """
    rows = sample_rows(request.listing)
    count = min(len(rows), max(LEAST_SAMPLES, sample_size(len(rows))))
    chosen = rows[pick(request.listing.sizes[rows], count)].tolist()
    listing = request.listing
    items = tuple(
        Item(
            listing.located(row),
            label_space.index[listing.classes[row]],
            () if listing.values is None else tuple(listing.values[row].tolist()),
            None if boxes is None else boxes.of(row),
        )
        for row in chosen
    )
    _made(request, label_space, items[-_WARM:])
    begun_s = time.perf_counter()
    receipt = _made(request, label_space, items)
    return Trial(receipt.rows, time.perf_counter() - begun_s)


def _made(request: Request, label_space: LabelSpace, items: tuple[Item, ...]) -> Receipt:
    config = request.config
    store = MemoryStore(f"memory://trial-{secrets.token_hex(8)}")
    task = ShardTask(
        fingerprint="",
        versions=determining(same_everywhere=config.image.same_everywhere),
        split=config.split,
        shard=0,
        shards=1,
        first_number=0,
        items=items,
        label_space=label_space,
        policy=config.image,
        label_offsets=tuple(label_offsets(config, label_space).items()),
        source=request.source,
        store=store,
        layout=config.record_options.layout,
        boxes=config.boxes,
        limit=config.sample_limit,
    )
    make_shard(task, _unheard)
    key = keys.receipt(config.split, 0, 1)
    receipt = Receipt.from_json(store.get(key), key)
    for info in list(store.list()):
        store.delete(info.key)
    return receipt


def _unheard(progress: Progress) -> None:
    """Nobody waits for it."""
