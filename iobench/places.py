"""Resolve the names that trials use to places: data, disk targets, stores, the run's own server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import without_advice
from iobench.config import BenchConfig
from iobench.data.making import DataMaker
from iobench.data.settings import LOCAL, BucketSettings
from iobench.errors import TrialFailed, Unavailable
from iobench.plan import formats_read, trials
from iobench.probes import disk
from iobench.probes.object_store import objects as probe_objects
from iobench.s3_server import MotoServer, signed_in
from iobench.trial import Place

_BUCKET = "iobench"


class Places:
    """Resolves names while a run lasts, and removes what its probes wrote when it ends.

    Probes write below a folder or prefix that is named after the run, so that other runs on the
    same disk or store, also of other hosts, keep theirs. A place that could not be made is not
    tried twice: the same error is raised again.

    Args:
        config: of the run.
        note: receives a line about each piece of work.
        run_id: the run's own name (``Result.run_id``).
        earlier: names that trials used before this run was resumed: their files may still be there.
    """

    def __init__(
        self,
        config: BenchConfig,
        note: Callable[[str], None],
        run_id: str,
        earlier: Iterable[str] = (),
    ) -> None:
        self._config, self._run_id = config, run_id
        self._earlier = set(earlier)
        disks = config.disk.targets if config.disk else ()
        self._disks = {target.label: Path(target.path).expanduser() for target in disks}
        stores = config.object_store.targets if config.object_store else ()
        self._stores = {target.label: target for target in stores}
        self._note = note
        self._server: MotoServer | None = None
        self._stack = contextlib.ExitStack()
        self._maker = DataMaker(
            config.data, self._bucket, note, partial(formats_read, trials(config))
        )
        self._found: dict[str, Place | Exception] = {}

    def __enter__(self) -> Places:
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:  # ends the run's own server, which keeps everything in memory
            for name in {*self._found, *self._earlier}:
                self._clean(name)

    def get(self, name: str) -> Place:
        """The place called ``name``; it is made if it does not exist.

        Raises:
            Unavailable: what it needs is not on this machine.
            TrialFailed: a process that it needs could not be started; tried again by the next call.
            DataprepError, OSError: it cannot be made.
        """
        if name not in self._found:
            try:
                self._found[name] = self._resolve(name)
            except TrialFailed:
                raise
            except Exception as error:  # noqa: BLE001  raised below, now and later
                self._found[name] = error
        found = self._found[name]
        if isinstance(found, Exception):
            raise found
        return found

    def found(self, names: Iterable[str]) -> dict[str, Place]:
        """The places of ``names`` that are available."""
        found = {name: self._found.get(name) for name in names}
        return {name: place for name, place in found.items() if isinstance(place, Place)}

    def environment(self, names: Iterable[str]) -> Mapping[str, str]:
        """What a trial that uses these places needs in its environment."""
        endpoints = {place.store.endpoint_url for place in self.found(names).values()}
        own = self._server is not None and self._server.url in endpoints
        return MotoServer.ENVIRONMENT if own else {}

    def _resolve(self, name: str) -> Place:
        room, slash, label = name.partition("/")
        if slash and room == "disk":
            return Place(str(disk.folder_of_run(self._disks[label], self._run_id)), "empty")
        if slash and room == "store":
            return probe_objects.place_of_run(self._on_store(self._stores[label]), self._run_id)
        return self._maker.place(name)

    @contextlib.contextmanager
    def _bucket(self) -> Iterator[Place]:
        """Where copies of data on a store go; with moto's credentials on the run's own server."""
        bucket = self._config.data.bucket
        place = self._on_store(bucket)
        with signed_in() if bucket.uri == LOCAL else contextlib.nullcontext():
            yield place

    def _on_store(self, bucket: BucketSettings) -> Place:
        """The configured bucket, or one on the run's own server."""
        if bucket.uri != LOCAL:
            return Place(bucket.uri, "empty", bucket.store)
        if self._server is None:
            self._note("starting an S3 server (moto) on this machine")
            try:
                self._server = self._stack.enter_context(MotoServer())
            except TrialFailed:
                raise
            except RuntimeError as error:
                raise Unavailable(str(error)) from None
            self._server.create_bucket(_BUCKET)
        options = StoreOptions(endpoint_url=self._server.url)
        return Place(f"s3://{_BUCKET}", "empty", options)

    def _clean(self, name: str) -> None:
        """Remove what this run's probes wrote to a place; note what may be left there."""
        room, slash, label = name.partition("/")
        if slash and room == "disk":
            target = self._disks[label]
            try:
                disk.clean(target, self._run_id)
            except OSError as error:
                folder = disk.folder_of_run(target, self._run_id)
                self._note(f"files may be left in {folder}: {error.strerror or error}")
        elif slash and room == "store" and self._stores[label].uri != LOCAL:
            store = self._on_store(self._stores[label])
            try:
                probe_objects.clean(store, self._run_id)
            except (DataprepError, OSError) as error:
                # Any other error kept the probes from writing, too.
                if probe_objects.is_overload(str(error)):
                    prefix = probe_objects.place_of_run(store, self._run_id).uri
                    self._note(f"objects may be left below {prefix}/: {without_advice(str(error))}")
