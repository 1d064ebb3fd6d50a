"""Names in trials to places: data, disk targets, stores; a server of the run's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import without_advice
from iobench.config import BenchConfig
from iobench.data.making import Maker
from iobench.data.settings import LOCAL
from iobench.errors import Unavailable
from iobench.probes import disk
from iobench.probes.object_store.figures import is_overload
from iobench.probes.object_store.pool import PREFIX
from iobench.probes.object_store.pool import clean as clean_store
from iobench.probes.settings import StoreTarget
from iobench.s3_server import MotoServer, signed_in
from iobench.trial import Place

_BUCKET = "iobench"


class Places:
    """Resolves names while a run lasts; cleans up behind the probes when it ends.

    A place that could not be had is not asked for twice: the same error is raised again.
    ``earlier``: names that trials of this run have used before it was resumed; who stopped it
    may have kept it from cleaning up.
    """

    def __init__(
        self, config: BenchConfig, note: Callable[[str], None], earlier: Iterable[str] = ()
    ) -> None:
        self._config = config
        self._earlier = set(earlier)
        self._note = note
        self._server: MotoServer | None = None
        self._stack = contextlib.ExitStack()
        self._maker: Maker | None = None
        self._found: dict[str, Place] = {}
        self._failed: dict[str, Exception] = {}

    def __enter__(self) -> Places:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._clean()
        finally:
            self._stack.close()

    def get(self, name: str) -> Place:
        """The place called ``name``, made where it is not there yet.

        Raises:
            Unavailable: what it needs is not on this machine.
            DataprepError, OSError: it cannot be made.
        """
        if name in self._failed:
            raise self._failed[name]
        if name not in self._found:
            try:
                self._found[name] = self._resolve(name)
            except Exception as error:
                self._failed[name] = error
                raise
        return self._found[name]

    def found(self, names: Iterable[str]) -> dict[str, Place]:
        """Those of ``names`` that could be had."""
        return {name: self._found[name] for name in names if name in self._found}

    def environment(self, names: list[str]) -> Mapping[str, str]:
        """What a trial that uses these places needs in its environment."""
        return MotoServer.ENVIRONMENT if any(map(self._is_own, names)) else {}

    def _resolve(self, name: str) -> Place:
        room, slash, label = name.partition("/")
        if slash and room == "disk":
            return self._disk_target(label)
        if slash and room == "store":
            return self._store_target(label)
        if self._maker is None:
            self._maker = Maker(self._config.data, self._bucket, self._note, self._signed_in)
        return self._maker.place(name)

    def _disk_target(self, label: str) -> Place:
        assert self._config.disk is not None  # noqa: S101  the trial came from it
        path = next(t.path for t in self._config.disk.targets if t.label == label)
        return Place(str(Path(path).expanduser()), "empty")

    def _store_target(self, label: str) -> Place:
        target = self._store(label)
        if target.uri == LOCAL:
            return Place(f"s3://{_BUCKET}/probe", "empty", self._own_options())
        return Place(target.uri, "empty", target.store)

    def _store(self, label: str) -> StoreTarget:
        assert self._config.object_store is not None  # noqa: S101  the trial came from it
        return next(t for t in self._config.object_store.targets if t.label == label)

    def _bucket(self) -> Place:
        """Where copies of data on a store go."""
        bucket = self._config.data.bucket
        if bucket.uri == LOCAL:
            return Place(f"s3://{_BUCKET}", "empty", self._own_options())
        return Place(bucket.uri, "empty", bucket.store)

    def _own_options(self) -> StoreOptions:
        if self._server is None:
            self._note("starting an S3 server (moto) on this machine")
            try:
                self._server = self._stack.enter_context(MotoServer())
            except RuntimeError as error:
                raise Unavailable(str(error)) from None
            self._server.create_bucket(_BUCKET)
        return StoreOptions(endpoint_url=self._server.url)

    def _is_own(self, name: str) -> bool:
        place = self._found.get(name)
        own = self._server.url if self._server else None
        return place is not None and own is not None and place.store.endpoint_url == own

    def _signed_in(self) -> contextlib.AbstractContextManager[None]:
        """moto's credentials, while something is copied to the run's own server."""
        own = self._config.data.bucket.uri == LOCAL
        return signed_in() if own else contextlib.nullcontext()

    def _clean(self) -> None:
        """Remove what the probes wrote; the server of the run's own takes its bytes along."""
        for name in {*self._found, *self._earlier}:
            room, slash, label = name.partition("/")
            if slash and room == "disk":
                with contextlib.suppress(DataprepError, OSError):
                    disk.clean(Path(self._disk_target(label).uri))
            elif slash and room == "store" and self._store(label).uri != LOCAL:
                self._clean_store(label)

    def _clean_store(self, label: str) -> None:
        """What a store keeps because it refuses requests just now is said."""
        place = self._store_target(label)
        try:
            clean_store(place)
        except (DataprepError, OSError) as error:
            if is_overload(str(error)):
                left = f"{place.uri.rstrip('/')}/{PREFIX}"
                self._note(f"objects may be left below {left}: {without_advice(str(error))}")
