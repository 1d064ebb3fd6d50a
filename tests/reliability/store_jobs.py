"""Commands behind a store that fails: each in a process of its own, waits between attempts cut."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.commandline import Finished, comparable, without_etags

PATIENCE_S = 180.0
LARGE = b"".join(number.to_bytes(4, "big") for number in range(9 * 2**18))
"""Two parts of five mebibytes, the last shorter."""
_SPAWN = multiprocessing.get_context("forkserver")
_SPAWN.set_forkserver_preload(["tests.reliability.store_jobs", "dataprep.job.run", "boto3"])
_LONGEST_WAIT_S = 0.02


def run(command: Sequence[str], folder: Path) -> Finished:
    """``dataprep COMMAND`` to its end; code -1 where it did not end."""
    return _in_a_process(_dataprep, (tuple(command),), folder)


def read(uri: str, endpoint_url: str, how: str, folder: Path) -> Finished:
    """All images of a data set, ``how`` they are read: ``all`` or ``one by one``; their digests."""
    return _in_a_process(_read, (uri, endpoint_url, how), folder)


def put_in_parts(uri: str, endpoint_url: str, key: str, folder: Path) -> Finished:
    """``LARGE`` put as an upload in parts."""
    return _in_a_process(_put_in_parts, (uri, endpoint_url, key), folder)


def digests(images: Sequence[bytes]) -> str:
    """What ``read`` prints."""
    return "\n".join(hashlib.sha256(image).hexdigest() for image in images)


def content(found: Mapping[str, bytes]) -> dict[str, object]:
    """Objects as they must repeat on any store; leases aside."""
    kept = {key: data for key, data in found.items() if not key.startswith("leases/")}
    if not all(_is_json(data) for key, data in kept.items() if key.endswith(".json")):
        return {"damaged": True}
    return {
        key: without_etags(found[key]) if key.startswith("receipts/") else value
        for key, value in comparable(kept).items()
    }


def untrue_receipts(found: Mapping[str, bytes]) -> list[str]:
    """Receipts of objects that are not what they say."""
    untrue = []
    for key, data in found.items():
        if key.startswith("receipts/") and _is_json(data):
            for stored in json.loads(data)["formats"].values():
                for file in (stored["file"], *stored["indexes"]):
                    there = found.get(file["key"], b"")
                    if hashlib.sha256(there).hexdigest() != file["sha256"]:
                        untrue.append(key)
    return untrue


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _in_a_process(work: Callable[..., None], given: tuple[Any, ...], folder: Path) -> Finished:
    out, err = folder / "out", folder / "err"
    process = _SPAWN.Process(
        target=_started, args=(work, given, dict(os.environ), str(out), str(err))
    )
    process.start()
    process.join(PATIENCE_S)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        code = -1
    return Finished(code, out.read_text(), err.read_text())


def _started(
    work: Callable[..., None],
    given: tuple[Any, ...],
    environment: Mapping[str, str],
    out: str,
    err: str,
) -> None:
    # The server that forks has the environment of whoever began it, which may be another test.
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    _hurry()
    work(*given)


def _hurry() -> None:
    """Attempts follow each other at once, and a lease lapses after seconds, not minutes."""
    import time

    from dataprep.stores import s3_leases

    sleep = time.sleep

    def hurried(duration_s: Any, /) -> None:
        sleep(min(duration_s, _LONGEST_WAIT_S))

    time.sleep = hurried
    s3_leases._GIVEN_UP_AFTER_S = 3.0
    s3_leases.take.__kwdefaults__ = {"lifetime_s": 4.0, "every_s": 0.5}
    s3_leases.holders.__kwdefaults__ = {"lifetime_s": 4.0}


def _dataprep(arguments: tuple[str, ...]) -> None:
    from dataprep.cli import main

    sys.argv = ["dataprep", *arguments]
    main()


def _read(uri: str, endpoint_url: str, how: str) -> None:
    import dataprep

    options = dataprep.StoreOptions(endpoint_url=endpoint_url, max_attempts=2, read_timeout_s=1)
    try:
        dataset = dataprep.open(uri, options=options)
        if how == "all":
            images = [bytes(sample.image) for sample in dataset]
        else:
            images = [bytes(dataset[number].image) for number in range(len(dataset))]
    except dataprep.errors.DataprepError as error:
        sys.stderr.write(f"dataprep: {error}\n")
        os._exit(1)
    sys.stdout.write(digests(images) + "\n")
    os._exit(0)


def _put_in_parts(uri: str, endpoint_url: str, key: str) -> None:
    import dataprep
    from dataprep.stores import s3, s3_writing

    s3_writing.MULTIPART_FROM_BYTES = s3_writing.PART_BYTES = 5 * 2**20
    options = dataprep.StoreOptions(endpoint_url=endpoint_url, max_attempts=2, read_timeout_s=1)
    try:
        s3.S3Store(uri, options).put(key, LARGE)
    except dataprep.errors.DataprepError as error:
        sys.stderr.write(f"dataprep: {error}\n")
        os._exit(1)
    os._exit(0)
