"""Inspect an output, a shard or a record. The content is shown as text, a picture or a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dataprep.checking.contact_sheet import write_contact_sheet
from dataprep.checking.record_views import list_records, show_record
from dataprep.checking.result import Inspection
from dataprep.checking.split_records import SplitRecords, faults_of, read_evenly_spaced
from dataprep.checking.split_summary import summaries_of, summary_text
from dataprep.errors import (
    ConfigError,
    DatasetError,
    ObjectNotFound,
    PermissionRefused,
    StoreError,
)
from dataprep.formats.shard_reader import Record, ShardReader
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.reading.dataset import Dataset
from dataprep.reading.splits import open_split
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store

IMAGES = 48
"""The default number of images on a contact sheet, and of each split on a page."""

_MAX_SHOWN_ROWS = 20  # of the samples that match a query
_QUERY_COLUMNS = ("label", "synset", "source_width", "source_height", "width", "height", "source")


def inspect(
    target: str | os.PathLike[str],
    *,
    split: str | None = None,
    format: str | None = None,
    record: int | None = None,
    save: str | os.PathLike[str] | None = None,
    contact_sheet: str | os.PathLike[str] | None = None,
    html: str | os.PathLike[str] | None = None,
    images: int | None = None,
    where: str | None = None,
    options: StoreOptions | None = None,
) -> Inspection:
    """Show what an output or a shard contains.

    By default, the result is a summary of each split of an output, or a line for each record of a
    shard. With other options, it shows one record, a picture of many records, a page about an
    output, or the samples that match a query.

    Args:
        target: the path or URI of an output or of one shard. Any program may have written the
            shard.
        split: a split of an output. By default, the summary and the page show all splits, and all
            other options refer to the split ``train``.
        format: the format of an output from which a record, a picture or a page is read.
        record: the number of the record that is shown, from 0, in the shard or in the split.
        save: the file to which the image of this record is written.
        contact_sheet: the file to which a picture of many records is written, ``.png`` or ``.jpg``.
        html: the file to which a page about an output is written, ``.html``.
        images: the number of images in the picture, or for each split on the page. The default is
            48.
        where: a query over the table of samples, as in ``Dataset.where``. The samples that match it
            are counted and listed. With ``contact_sheet``, only these samples are drawn.
        options: endpoint, profile and other options of the store.

    Returns:
        The result as text and for ``--json``, and whether damage was found in records that were
        read.

    Raises:
        ConfigError: options exclude each other, there is no such record, the target is not a shard,
            the query is not allowed, or ``images`` is below 1.
        ManifestMissing: there is no such data set, or it is not complete.
        FormatMissing: the split does not have the format.
        RecordError: the record is damaged.
        StoreError: the store cannot be read.
        OSError: a file cannot be written.
    """
    if save and record is None:
        raise ConfigError("--save needs --record N, the record whose image it stores")
    if images is not None and images < 1:
        raise ConfigError(f"--images {images}: give a number of at least 1")
    _require_one_view(record, contact_sheet, html, where)
    store, info = _open_target(target, options)
    if info:
        _require_shard_options(target, split or format, html, where)
    if html is not None:
        return _write_page(store, split, format, images or IMAGES, Path(html))
    if where is not None:
        dataset = Dataset(store, split or "train", format)
        return _show_matching_samples(dataset, where, contact_sheet, images)
    shard = _open_shard(store, info, options) if info else None
    if record is None and contact_sheet is None:
        if format or images:
            raise ConfigError("--format and --images need --record, --contact-sheet or --html")
        return _overview(store, split) if shard is None else list_records(shard)
    records = SplitRecords(Dataset(store, split or "train", format)) if shard is None else shard
    if contact_sheet is not None:
        return write_contact_sheet(records, Path(contact_sheet), images or IMAGES)
    return show_record(records.read(record or 0), save)


def _require_one_view(
    record: int | None, contact_sheet: object | None, html: object | None, where: str | None
) -> None:
    """Raise ConfigError for options that exclude each other."""
    if [record, contact_sheet, html].count(None) < 2:
        raise ConfigError("give one of --record, --contact-sheet and --html")
    if where is not None and (record is not None or html is not None):
        raise ConfigError("--where counts and shows samples: give it without --record and --html")


def _require_shard_options(
    target: object, split_or_format: str | None, html: object | None, where: str | None
) -> None:
    """Raise ConfigError for options that need an output, because the target is one shard."""
    if split_or_format:
        raise ConfigError(f"--split and --format choose within an output: {target} is one shard")
    if html is not None:
        raise ConfigError(f"--html is a page about an output: {target} is one shard")
    if where is not None:
        raise ConfigError(
            f"--where is a query over the table of samples of an output: {target} is one shard"
        )


def _show_matching_samples(
    dataset: Dataset, query: str, contact_sheet: str | os.PathLike[str] | None, images: int | None
) -> Inspection:
    """Show the samples that match a query, as a count with the first rows, or as a picture."""
    if images and contact_sheet is None:
        raise ConfigError("--images needs --contact-sheet beside --where")
    numbers: list[int] = dataset.matching(query).tolist()
    count = f"{len(numbers):,} of {counted(len(dataset), 'sample')}"
    line = f"{dataset.split}: {count} where {query}"
    content = {
        "output": dataset.store.uri,
        "split": dataset.split,
        "where": query,
        "count": len(numbers),
        "of": len(dataset),
        "numbers": numbers,
    }
    if contact_sheet is not None:
        if not numbers:
            raise ConfigError(f"--contact-sheet: there is no sample to draw: {line}")
        samples = SplitRecords(dataset, numbers)
        samples.uri += f" where {query}"
        sheet = write_contact_sheet(samples, Path(contact_sheet), images or IMAGES)
        return replace(sheet, content={**content, **sheet.content})
    lines = [line]
    if numbers:
        shown_numbers = numbers[:_MAX_SHOWN_ROWS]
        rows = dataset.written[list(_QUERY_COLUMNS)].iloc[shown_numbers].fillna("")
        rows.insert(0, "number", rows.index)
        lines += rows.to_string(index=False).split("\n")
    if len(numbers) > _MAX_SHOWN_ROWS:
        lines.append(f"and {len(numbers) - _MAX_SHOWN_ROWS:,} more; --json prints all numbers")
    return Inspection("\n  ".join(lines), content)


def _open_target(
    target: str | os.PathLike[str], options: StoreOptions | None
) -> tuple[Store, ObjectInfo | None]:
    """Find out whether a path or URI is a shard or an output.

    Returns:
        The store that has the shard, and the listing entry of the shard. If the target is an
        output, the store of the output, and None.
    """
    uri = os.fspath(target)
    if "://" not in uri:
        uri = os.path.abspath(uri)  # noqa: PTH100  Path.resolve would follow links
    folder, _, name = uri.rstrip("/").rpartition("/")
    try:
        store = open_store(folder or "/", options)
        return store, store.head(name)
    except (ConfigError, ObjectNotFound, PermissionRefused):
        # There is no such object, or the target is a whole bucket, s3://bucket. Permission for an
        # output may not include the folder above it.
        return open_store(uri, options), None
    except StoreError as error:
        error.exit_code = 2  # an argument is wrong: it names a store that cannot be reached
        raise


def _open_shard(store: Store, info: ObjectInfo, options: StoreOptions | None) -> ShardReader:
    """Open a shard. If several formats match its first bytes, ask the manifest of its output."""

    def format_in_manifest(candidates: Sequence[str]) -> str | None:
        """The format under which the manifest lists the shard; None if there is no manifest."""
        split = keys.split_of_shard(info.key)
        parent, _, folder = store.uri.rstrip("/").rpartition("/")
        if split is None or not parent:
            return None
        try:
            manifest, _ = open_split(open_store(parent, options), split)
        except (DatasetError, StoreError, ConfigError):
            return None
        for name, entry in manifest.formats.items():
            if f"{folder}/{info.key}" in {shard.key for shard in entry.shards}:
                return name
        return None

    return ShardReader(store, info, format_in_manifest)


def _overview(store: Store, split: str | None) -> Inspection:
    """Summarise one split, or all splits."""
    summaries = summaries_of(store, split)
    text = "\n".join([summary_text(summary) for summary in summaries])
    return Inspection(text, {"output": store.uri, "splits": summaries})


def _write_page(
    store: Store, split: str | None, format: str | None, images: int, path: Path
) -> Inspection:
    """Write a page about one split, or about all splits."""
    from dataprep.checking.inspection_page import Split, render

    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a name that ends in .html")
    summaries = summaries_of(store, split)
    splits: list[Split] = []
    incomplete: dict[str, str] = {}
    page_records: list[Record] = []
    for summary in summaries:
        name = summary["split"]
        if "why" in summary:
            incomplete[name] = summary["why"]
            continue
        dataset = Dataset(store, name, format)
        records = read_evenly_spaced(SplitRecords(dataset), images)
        splits.append(Split(summary, dataset.samples, dataset.label_space.labels, records))
        page_records += records
    path.write_bytes(render(store.uri, splits, incomplete))
    faults = faults_of(page_records)
    content = {"output": store.uri, "splits": summaries, "html": str(path), "faults": faults}
    return Inspection.of_file(f"{path}: a page about {store.uri}", content, faults)
