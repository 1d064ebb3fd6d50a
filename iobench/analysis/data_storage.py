"""PURE. Which of the probed disks and stores hold the data of a run.

A probe may measure several disks and stores. Its rates are those of a loader's storage only if it
read the same file system or bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from iobench.analysis.repeats import is_number, is_on_store
from iobench.data.existing import folder_key
from iobench.data.settings import LOCAL
from iobench.results.result import Result
from iobench.results.trial import Params

_FILE_SYSTEM_KEYS = ("kind", "file_system", "total_bytes", "device")
"""Keys of a target that have equal values for two folders of the same file system."""


def is_disk_of(targets: Mapping[str, Any], data: str, label: str) -> bool:
    """Return whether a disk target is on the same file system as the folder that holds data.

    Args:
        targets: descriptions of the disks, by label.
        data: the data, as trials name them (``shards@disk``).
        label: the label of the target.
    """
    own_label = folder_key(data, targets)
    if own_label == label:
        return True
    own, target = targets.get(own_label), targets.get(label)
    if not isinstance(own, Mapping) or not isinstance(target, Mapping):
        return False
    if not is_number(own.get("total_bytes")):
        return False
    return all(own.get(key) == target.get(key) for key in _FILE_SYSTEM_KEYS)


def holds_the_data(result: Result, label: str) -> bool:
    """Return whether the run's data are in the same bucket as the probed store.

    Args:
        result: the run.
        label: the label of the store in ``object_store.targets``.
    """
    uri, endpoint_url = address_of_data(result.config.get("data") or {})
    probe = result.config.get("object_store") or {}
    for target in probe.get("targets") or ():
        if target.get("label", "s3") == label:
            target_uri = str(target.get("uri") or LOCAL)
            target_endpoint_url = (target.get("store") or {}).get("endpoint_url")
            return _bucket(uri, endpoint_url) == _bucket(target_uri, target_endpoint_url)
    return False


def supplies_data(result: Result, kind: str, params: Params, name: str = "") -> bool:
    """Return whether a probe measured the disk or the store from which data are or would be read.

    If no trial read the data from a disk, they can be copied to any disk, so that every disk
    counts. In the same way, every store counts if no trial read any data from a store.

    Args:
        result: the run.
        kind: the kind of the probe's trials: ``disk`` or ``object``.
        params: the parameters of the probe's trials.
        name: the name of the data without its location, such as ``shards-16MB``; not used for a
            store, because all data on a store are in the same one.
    """
    if kind == "object":
        is_used = any(is_on_store(trial.params) for trial in result.trials)
        return not is_used or holds_the_data(result, str(params.get("store")))
    data = f"{name}@disk"
    is_used = any(trial.params.get("data") == data for trial in result.trials)
    targets = result.environment.get("targets") or {}
    return not is_used or is_disk_of(targets, data, str(params.get("target")))


def address_of_data(data: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the URI of the data on a store, and the store's endpoint; None if it has no endpoint.

    It is the URI of given shards or of the source, if these are on a store. Otherwise it is that of
    ``data.bucket``, to which the data are copied.

    Args:
        data: the section ``data`` of a config.
    """
    for key in ("shards", "source"):
        uri = str(data.get(key) or "")
        if "://" in uri:
            return uri, (data.get("store") or {}).get("endpoint_url")
    bucket = data.get("bucket") or {}
    return str(bucket.get("uri") or LOCAL), (bucket.get("store") or {}).get("endpoint_url")


def _bucket(uri: str, endpoint_url: str | None) -> tuple[str, str]:
    """Return the endpoint and the bucket of an address, for comparison."""
    return (endpoint_url or "").rstrip("/"), urlsplit(uri).netloc or uri
