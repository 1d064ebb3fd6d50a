"""Find the locations of the data, disks and stores that trials name, and clean them up at the end.

A location may also be on *this program's S3 server*. It is started on this machine when the first
location needs it, and it ends with the run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import without_advice
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import formats_read, trials
from iobench.data.making import DataMaker
from iobench.data.settings import LOCAL, BucketSettings
from iobench.errors import TrialFailed, Unavailable
from iobench.probes import disk
from iobench.probes.object_store import objects as probe_objects
from iobench.results.trial import Location
from iobench.servers.moto_server import MotoServer, signed_in

_BUCKET = "iobench"
"""The name of the bucket on this program's S3 server."""


class Locations:
    """Finds locations while a run lasts, and then removes the files and objects of its probes.

    This object is a context manager, and the run lasts as long as its ``with`` block. A name is
    ``disk/LABEL`` or ``store/LABEL`` for a target to which probes write, or the name of data such
    as ``shards@disk``. Probes write below a folder or prefix that is named after ``run_id``. So
    they do not touch the files of other runs and hosts on the same disk or store.

    Args:
        config: the config of the run.
        note: receives lines about slow preparations, such as making data, and about files that
            could not be removed.
        run_id: the id of the run (``Result.run_id``); on other hosts than host 0 with the number of
            the host.
        earlier_names: names that trials may have used before this run was resumed. Files and
            objects of probes are also removed at these locations.
    """

    def __init__(
        self,
        config: BenchConfig,
        note: Callable[[str], None],
        run_id: str,
        earlier_names: Iterable[str] = (),
    ) -> None:
        self._config, self._note, self._run_id = config, note, run_id
        self._earlier_names = set(earlier_names)
        disk_targets = config.disk.targets if config.disk else ()
        self._disks = {target.label: Path(target.path).expanduser() for target in disk_targets}
        store_targets = config.object_store.targets if config.object_store else ()
        self._stores = {target.label: target for target in store_targets}
        self._server: MotoServer | None = None
        self._stack = contextlib.ExitStack()
        self._maker = DataMaker(
            config.data, self._bucket, note, partial(formats_read, trials(config))
        )
        self._resolved: dict[str, Location | Exception] = {}
        """The location of each name so far, or the error of its preparation."""

    def __enter__(self) -> Locations:
        return self

    def __exit__(self, *_: object) -> None:
        # This program's S3 server ends with the block, and its objects need not be removed.
        with self._stack:
            for name in {*self._resolved, *self._earlier_names}:
                self._clean(name)

    def get(self, name: str) -> Location:
        """The location with this name. Data that do not exist yet are made.

        If the location cannot be prepared, each later call raises the same error, unless it is
        TrialFailed. So a long preparation is not repeated in vain.

        Raises:
            Unavailable: something that the location needs is missing on this machine.
            TrialFailed: a process that the location needs could not be started. The next call tries
                to start it again.
            DataprepError, OSError: the location cannot be prepared.
        """
        if name not in self._resolved:
            try:
                self._resolved[name] = self._resolve(name)
            except TrialFailed:
                raise
            except Exception as error:  # noqa: BLE001  raised below, and by later calls
                self._resolved[name] = error
        location = self._resolved[name]
        if isinstance(location, Exception):
            raise location
        return location

    def resolved(self, names: Iterable[str]) -> dict[str, Location]:
        """The locations of ``names`` that ``get`` has found so far, by their names."""
        locations = {}
        for name in names:
            location = self._resolved.get(name)
            if isinstance(location, Location):
                locations[name] = location
        return locations

    def environment(self, names: Iterable[str]) -> Mapping[str, str]:
        """The environment variables that a trial needs for these locations.

        These are the credentials of this program's S3 server, if one of the locations is on it.
        """
        if self._server is None:
            return {}
        locations = self.resolved(names).values()
        endpoints = {location.store.endpoint_url for location in locations}
        return MotoServer.ENVIRONMENT if self._server.url in endpoints else {}

    def _resolve(self, name: str) -> Location:
        """Prepare the location with this name. The errors are those of ``get``."""
        prefix, slash, label = name.partition("/")
        if slash and prefix == "disk":
            folder = disk.folder_of_run(self._disks[label], self._run_id)
            return Location(str(folder), "empty")
        if slash and prefix == "store":
            store = self._store_location(self._stores[label])
            return probe_objects.location_of_run(store, self._run_id)
        return self._maker.location(name)

    @contextlib.contextmanager
    def _bucket(self) -> Iterator[Location]:
        """The location for copies of data on a store.

        If the location is on this program's S3 server, the environment has the credentials of the
        server in the block.
        """
        bucket = self._config.data.bucket
        location = self._store_location(bucket)
        with signed_in() if bucket.uri == LOCAL else contextlib.nullcontext():
            yield location

    def _store_location(self, bucket: BucketSettings) -> Location:
        """The configured bucket, or for ``local`` a bucket on this program's S3 server.

        The server is started if it does not run yet.

        Raises:
            Unavailable: the server cannot run on this machine.
            TrialFailed: the server could not be started.
        """
        if bucket.uri != LOCAL:
            return Location(bucket.uri, "empty", bucket.store)
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
        return Location(f"s3://{_BUCKET}", "empty", options)

    def _clean(self, name: str) -> None:
        """Remove the files or objects of this run's probes at a location. Data sets are kept."""
        prefix, slash, label = name.partition("/")
        if slash and prefix == "disk":
            self._clean_disk(self._disks[label])
        elif slash and prefix == "store" and self._stores[label].uri != LOCAL:
            self._clean_store(self._store_location(self._stores[label]))

    def _clean_disk(self, target: Path) -> None:
        """Remove the files of this run's probes. If this fails, a note says where they are."""
        try:
            disk.clean(target, self._run_id)
        except OSError as error:
            folder = disk.folder_of_run(target, self._run_id)
            self._note(f"files may be left in {folder}: {error.strerror or error}")

    def _clean_store(self, location: Location) -> None:
        """Remove the objects of this run's probes.

        If an overloaded store refuses this, a note says where they are.
        """
        try:
            probe_objects.clean(location, self._run_id)
        except (DataprepError, OSError) as error:
            # Other errors, such as a missing permission, also prevent probes from writing objects,
            # so that there is nothing to remove.
            if probe_objects.is_overload(str(error)):
                prefix = probe_objects.location_of_run(location, self._run_id).uri
                self._note(f"objects may be left below {prefix}/: {without_advice(str(error))}")
