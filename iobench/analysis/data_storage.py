"""PURE. Which of the probed disks and stores hold the data of a run.

A probe may measure several disks and stores. Its rates are those of a loader's storage only if it
read the same file system or bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from iobench.analysis.repeats import data_name, is_number, is_on_store
from iobench.data.existing import folder_key
from iobench.data.settings import LOCAL
from iobench.results.result import Result
from iobench.results.trial import Params

_FILE_SYSTEM_KEYS = ("kind", "file_system", "total_bytes", "device")
"""Keys of a target that have equal values for two folders of the same file system."""


_KEYS_OF_FORMS = {"shards": "shards", "photos": "source"}
"""Forms of data that may be on a store before the run. The values are the keys of the section
``data`` that have their URIs. Data of all other forms are copied to ``data.bucket``."""


def is_disk_of(targets: Mapping[str, Any], data: str, label: str) -> bool:
    """Return whether a disk target is known to be on the file system of the folder of data.

    Args:
        targets: descriptions of the disks, by label.
        data: the data, as trials name them (``shards@disk``).
        label: the label of the target.
    """
    own_label = folder_key(data, targets)
    if own_label == label:
        return True
    own_disk, disk = targets.get(own_label), targets.get(label)
    if not isinstance(own_disk, Mapping) or not isinstance(disk, Mapping):
        return False
    have_sizes = is_number(own_disk.get("total_bytes")) and is_number(disk.get("total_bytes"))
    return have_sizes and not is_other_disk(targets, data, label)


def is_other_disk(targets: Mapping[str, Any], data: str, label: str) -> bool:
    """Return whether a disk target is known to be on another file system than the folder of data.

    Results of earlier versions lack the size of a folder that did not exist at first. Then
    the other properties of the folder are compared.

    Args:
        targets: descriptions of the disks, by label.
        data: the data, as trials name them (``shards@disk``).
        label: the label of the target.
    """
    own_label = folder_key(data, targets)
    own_disk, disk = targets.get(own_label), targets.get(label)
    if own_label == label or not own_disk or not disk:
        return False
    for key in _FILE_SYSTEM_KEYS:
        has_both = own_disk.get(key) is not None and disk.get(key) is not None
        if own_disk.get(key) != disk.get(key) and (has_both or key != "total_bytes"):
            return True
    return False


def holds_the_data(result: Result, label: str) -> bool:
    """Return whether data that the run reads from a store are in the bucket of the probed store.

    If the run reads no data from a store, the result is for the store to which its shards belong:
    the store that has them, or ``data.bucket``.

    Args:
        result: the run.
        label: the label of the store in ``object_store.targets``.
    """
    names = {data_name(trial.params) for trial in result.trials if is_on_store(trial.params)}
    section = result.config.get("data") or {}
    buckets = {_bucket(*address_of_data(section, name)) for name in names or {"shards"}}
    probe = result.config.get("object_store") or {}
    for target in probe.get("targets") or ():
        if target.get("label", "s3") == label:
            target_uri = str(target.get("uri") or LOCAL)
            target_endpoint_url = (target.get("store") or {}).get("endpoint_url")
            return _bucket(target_uri, target_endpoint_url) in buckets
    return False


def supplies_data(result: Result, kind: str, params: Params, name: str = "") -> bool:
    """Return whether a probe measured the disk or the store from which data are or would be read.

    If no trial read the data from a disk, they can be copied to any disk, so that every disk
    counts. Otherwise a disk is left out if it is known to be another one. In the same way, every
    store counts if no trial read any data from a store; otherwise only those count that hold data.

    Args:
        result: the run.
        kind: the kind of the probe's trials: ``disk`` or ``object``.
        params: the parameters of the probe's trials.
        name: the name of the data without its location, such as ``shards-16MB``; not used for a
            store.
    """
    if kind == "object":
        is_used = any(is_on_store(trial.params) for trial in result.trials)
        return not is_used or holds_the_data(result, str(params.get("store")))
    data = f"{name}@disk"
    is_used = any(trial.params.get("data") == data for trial in result.trials)
    targets = result.environment.get("targets") or {}
    return not is_used or not is_other_disk(targets, data, str(params.get("target")))


def address_of_data(section: Mapping[str, Any], name: str) -> tuple[str, str | None]:
    """Return the URI of data on a store, and the URL of the store's endpoint.

    The second result is None if the config names no endpoint. Existing shards (``data.shards``) and
    photographs (``data.source``) that are on a store are read from there. All other data are copied
    to ``data.bucket``.

    Args:
        section: the section ``data`` of a config.
        name: the name of the data without its location, such as ``shards``.
    """
    uri = str(section.get(_KEYS_OF_FORMS.get(name, "")) or "")
    if "://" in uri:
        return uri, (section.get("store") or {}).get("endpoint_url")
    bucket = section.get("bucket") or {}
    return str(bucket.get("uri") or LOCAL), (bucket.get("store") or {}).get("endpoint_url")


def _bucket(uri: str, endpoint_url: str | None) -> tuple[str, str]:
    """Return the endpoint and the bucket of an address, for comparison."""
    return (endpoint_url or "").rstrip("/"), urlsplit(uri).netloc or uri
