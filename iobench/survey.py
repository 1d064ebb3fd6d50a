"""What is there before a run begins: data, stores and their prices. Nothing is made or written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from dataprep.credentials import without_credentials
from dataprep.errors import DataprepError
from dataprep.prices import Prices, price_at, read_prices
from dataprep.sources import open_source
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import S3Bucket
from iobench.config import BenchConfig
from iobench.data.given import expanded
from iobench.data.making import Maker
from iobench.data.settings import LOCAL, DataSettings, has_side, split_name
from iobench.environment import gpus
from iobench.forecast.bounds import exactly
from iobench.forecast.facts import OWN_SERVER, DataFacts, Facts, Photographs, StoreFacts
from iobench.forecast.making import OF_SHARDS, photographs, to_be_made
from iobench.image_files import image_files
from iobench.plan import places_of
from iobench.stored import stored
from iobench.trial import Place, TrialSpec

_ATTEMPTS = 2


def survey(config: BenchConfig, specs: Iterable[TrialSpec], *, thorough: bool = True) -> Facts:
    """What ``specs`` will find.

    Data that lie there are counted, by manifests and listings; others are estimated. What cannot
    be looked at becomes a problem of the facts, not an error. Unless ``thorough``, a source on a
    store is listed only where what is made of it is copied to Amazon's S3: that can take minutes.

    Raises:
        ConfigError: no such file of prices.
    """
    specs = list(specs)
    names = list(dict.fromkeys(name for spec in specs for name in places_of(spec)))
    looking = _Looking(config)
    stores = dict(looking.stores(names))
    on_all = any(spec.params.get("devices") == "all" for spec in specs)
    looking.thorough = thorough or ("bucket" in stores and stores["bucket"].is_amazon)
    return Facts(
        stores=stores,
        data=dict(looking.data([name for name in names if "/" not in name])),
        photographs=looking.photographs,
        processors=len(os.sched_getaffinity(0)),
        gpus=len(gpus()) if on_all else 0,
        problems=tuple(looking.problems),
    )


class _Looking:
    def __init__(self, config: BenchConfig) -> None:
        self._config = config
        # A store that does not answer is waited for by the run, not by a look at it.
        attempts = {"max_attempts": min(_ATTEMPTS, config.data.store.max_attempts)}
        hasty = config.data.store.model_copy(update=attempts)
        self._settings = config.data.model_copy(update={"store": hasty})
        self._maker = Maker(self._settings, lambda: Place("", "empty"), lambda line: None)
        self._photographs: Photographs | None = None
        self._looked = False
        self.thorough = True
        self.problems: list[str] = []

    @property
    def photographs(self) -> Photographs | None:
        """What images are made of; None where none are made, or they cannot be listed."""
        if not self._looked:
            self._looked = True
            self._photographs = self._look_for_photographs()
        return self._photographs

    def stores(self, names: Iterable[str]) -> Iterable[tuple[str, StoreFacts]]:
        """Of each object store among ``names``, and of the bucket of data where one is used."""
        prices: Prices | None = None
        for name, uri, options in self._reached(names):
            if uri == LOCAL:
                yield name, StoreFacts(server=OWN_SERVER)
                continue
            prices = prices or read_prices(_path(self._config.prices))
            yield name, self._priced(uri, options, prices)

    def data(self, names: Iterable[str]) -> Iterable[tuple[str, DataFacts]]:
        """Of each name, and of what it is made of."""
        wanted: dict[str, None] = {}
        for name in names:
            local = f"{name.rpartition('@')[0]}@disk"
            needed = ("photos@disk", "shards@disk", local, name)
            wanted |= dict.fromkeys(each for each in needed if self._can_be(each))
        found: dict[str, DataFacts] = {}
        for name in wanted:
            found[name] = self._found(name, found)
        return found.items()

    def _can_be(self, name: str) -> bool:
        """Without a source there are no photographs of shards that are given."""
        form, size, _ = split_name(name)
        given = self._settings.shards is not None
        of_source = form in ("photos", "originals") or size is not None or has_side(name)
        return not given or not of_source or self._settings.source is not None

    def _found(self, name: str, others: dict[str, DataFacts]) -> DataFacts:
        form, _, remote = split_name(name)
        straight = _lies_on_a_store(name, self._settings)
        if remote and not straight:
            local = others.get(f"{name.rpartition('@')[0]}@disk")
            if local is not None:
                return replace(local, store="bucket", made=False)
        try:
            place = straight or (self._maker.found(name) if self._can_look else None)
            if place is not None:
                store = "data" if straight else ""
                return _counted(place, store)
            if form == "shards" and self._settings.shards is not None:
                given = _lies_on_a_store("shards@s3", self._settings)
                if given is not None:
                    return replace(_counted(given, ""), made=False)
        except (DataprepError, OSError) as error:
            self.problems.append(f"{name} could not be looked at: {_line(error)}")
        shards = others.get("shards@disk")
        if shards is not None and shards.made and form in OF_SHARDS:
            return OF_SHARDS[form](shards)
        photos = self.photographs
        return replace(to_be_made(name, self._settings, photos), store="bucket" if remote else "")

    @property
    def _may_list(self) -> bool:
        return self.thorough or "://" not in (self._settings.source or "")

    @property
    def _can_look(self) -> bool:
        """Whether what was made before can be found: its name depends on the source's content."""
        settings = self._settings
        given = settings.shards is not None or settings.source is None
        return given or self.photographs is not None

    def _look_for_photographs(self) -> Photographs | None:
        settings = self._settings
        if settings.source is None:
            return photographs(settings) if settings.shards is None else None
        if not self._may_list:
            self.problems.append("data.source was not listed: --dry-run does")
            return None
        try:
            listing = open_source(expanded(settings.source), options=settings.store).list()
            files = image_files(listing)
            self._maker.take(listing)
        except (DataprepError, OSError) as error:
            self.problems.append(f"data.source could not be listed: {_line(error)}")
            return None
        size = exactly(float(files.sizes.sum()))
        return Photographs(exactly(len(files.names)), size, listed=True)

    def _reached(self, names: Iterable[str]) -> Iterable[tuple[str, str, StoreOptions]]:
        """Key, address and options of each object store that is used."""
        settings, bucket = self._settings, self._settings.bucket
        targets = self._config.object_store.targets if self._config.object_store else ()
        for target in targets:
            if f"store/{target.label}" in names:
                yield f"store/{target.label}", target.uri, target.store
        remote = [name for name in names if "/" not in name and split_name(name)[2]]
        straight = [_lies_on_a_store(name, settings) for name in remote]
        if any(place is None for place in straight):
            yield "bucket", bucket.uri, bucket.store
        for place in [place for place in straight if place is not None][:1]:
            yield "data", place.uri, place.store

    def _priced(self, uri: str, options: StoreOptions, prices: Prices) -> StoreFacts:
        if not uri.startswith("s3://"):
            return StoreFacts(server=f"{uri.partition('://')[0]}://")
        try:
            server = another_server(uri, options)
        except DataprepError as error:
            self.problems.append(f"{uri}: {_line(error)}")
            server = options.endpoint_url
        if server is not None:
            return StoreFacts(server=server)
        price, about = price_at(prices, options)
        whose = self._config.prices or "example prices, to be edited"
        return StoreFacts(price=price, prices=f"{whose}: {about}")


def another_server(uri: str, options: StoreOptions) -> str | None:
    """Return the endpoint by which a bucket is reached, unless it is Amazon's; to be shown.

    boto3 is asked: an option, the environment and its own config file can name one, also with a
    password, which is left out.

    Raises:
        ConfigError, StoreError: boto3 cannot be set up so.
    """
    server = S3Bucket(uri, options).connect().meta.endpoint_url
    is_amazon = (urlsplit(server).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
    return None if is_amazon else without_credentials(server)


def _lies_on_a_store(name: str, settings: DataSettings) -> Place | None:
    """Where data on a store are read as they lie, without a copy."""
    form, size, remote = split_name(name)
    if not remote:
        return None
    plain = form == "shards" and size is None and not has_side(name)
    if plain and settings.shards and "://" in settings.shards:
        return Place(settings.shards, "shards", settings.store, settings.split)
    if form == "photos" and settings.source and "://" in settings.source:
        return Place(settings.source, "files", settings.store)
    return None


def _counted(place: Place, store: str) -> DataFacts:
    """What lies there, exactly, by its manifest or a listing."""
    if place.holds == "files":
        found = stored(place, "files")
        size, count = exactly(found.bytes), exactly(found.samples)
        return DataFacts(count, size, count, size, count, store=store, made=True)
    from dataprep.dataset import open_dataset

    with open_dataset(place.uri, place.split, options=place.store) as dataset:
        formats = dataset.manifest.formats
        first = formats[dataset.format]
        total = sum(entry.bytes for entry in formats.values())
        shards = sum(len(entry.shards) for entry in formats.values())
    return DataFacts(
        samples=exactly(first.records),
        bytes=exactly(first.bytes),
        objects=exactly(len(first.shards)),
        # Indexes, receipts and tables lie beside them: seldom more than a tenth.
        all_bytes=exactly(total)._replace(high=1.1 * total + 1e5),
        all_objects=exactly(shards)._replace(high=3.0 * shards + 10),
        store=store,
        made=True,
    )


def _path(value: str | None) -> Path | None:
    return Path(value).expanduser() if value else None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
