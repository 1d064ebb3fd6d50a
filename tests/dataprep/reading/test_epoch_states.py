"""States of ``dataprep.to_torch`` continue within and between epochs, or are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.errors import ConfigError
from dataprep.reading.dataset import Dataset
from dataprep.reading.epoch_order import Order
from dataprep.reading.record_reader import Records
from dataprep.reading.staging import stage
from tests.dataprep.reading.torch_training import FEW_CORES, SAMPLES, STATEFUL, STYLES

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """A data set of 120 samples in several shards."""
    return dataprep.open(output)


class TestStates:
    """A state has a content, and some states are refused."""

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.smoke
    def test_workers_read(self, dataset: Dataset) -> None:
        """With workers, the main process reports that it does not know what was read."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
        loader = data_loader(batches, batch_size=None, num_workers=2)
        assert batches.state_dict()["samples"] == 0
        iterator = iter(loader)
        next(iterator)
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
                batches.state_dict()
            list(iterator)
        batches.set_epoch(3)
        assert batches.state_dict()["epoch"] == 3

    def test_plain_map_style(self, dataset: Dataset) -> None:
        """A plain map style never knows what was read: the error has two remedies."""
        images: Any = dataprep.to_torch(dataset)
        with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
            images.state_dict()
        list(images.sampler)
        with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
            images.state_dict()

    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    @STYLES
    def test_the_end_of_an_epoch(self, dataset: Dataset, iterable: bool, even: Any) -> None:
        """A state at the end of an epoch continues with the next one, as ``start`` does."""
        options: dict[str, Any] = {"iterable": iterable, "batch_size": 25, "even": even}
        batches = dataprep.to_torch(dataset, epoch=2, **options)
        list(batches)
        state = batches.state_dict()
        resumed = dataprep.to_torch(dataset, **options)
        resumed.load_state_dict(state)
        started = dataprep.to_torch(dataset, epoch=2, start=state["samples"], **options)
        expected = list(map(str, dataprep.to_torch(dataset, epoch=3, **options)))
        assert list(map(str, resumed)) == expected == list(map(str, started))

    @STYLES
    def test_a_last_batch_that_is_dropped(self, dataset: Dataset, iterable: bool) -> None:
        """The epoch has ended without its last batch, which is dropped."""
        options: dict[str, Any] = {"iterable": iterable, "batch_size": 50, "drop_last": True}
        batches = dataprep.to_torch(dataset, **options)
        list(batches)
        resumed = dataprep.to_torch(dataset, **options)
        resumed.load_state_dict(batches.state_dict())
        expected = dataprep.to_torch(dataset, epoch=1, **options)
        assert list(map(str, resumed)) == list(map(str, expected))

    @pytest.mark.parametrize("steps_taken", range(1, 9))
    def test_steps_that_have_begun_count(self, dataset: Dataset, steps_taken: int) -> None:
        """Samples of a step that all ranks take together are not read twice."""
        images = dataprep.to_torch(dataset, iterable=True, rank=0, world_size=2, global_batch=8)
        iterator = iter(images)
        for _ in range(steps_taken):
            next(iterator)
        assert images.state_dict()["samples"] == (8 if steps_taken <= 4 else 16)

    @STYLES
    def test_a_last_step_that_is_smaller(self, dataset: Dataset, iterable: bool) -> None:
        """The state is the end of the epoch, before and after the loop has asked for more."""
        batches = dataprep.to_torch(dataset, iterable=iterable, batch_size=7)
        iterator = iter(batches)
        assert sum(len(images) for images, _ in islice(iterator, 18)) == SAMPLES
        assert batches.state_dict()["samples"] == SAMPLES
        assert list(iterator) == []
        state = batches.state_dict()
        assert state["samples"] == SAMPLES
        batches.load_state_dict(state)
        next_epoch = batches.state_dict()
        assert (next_epoch["epoch"], next_epoch["samples"]) == (1, 0)

    def test_states_of_earlier_versions(self, dataset: Dataset, numbers: dict[bytes, int]) -> None:
        """States that lack the name of the data set are loaded as before."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=10)
        batches.load_state_dict({"epoch": 4, "seed": 3, "samples": 30})
        numbers_taken = [numbers[image] for images, _ in batches for image in images]
        order = Order(seed=3, global_batch=10, epoch=4, start=30)
        assert numbers_taken == Records(dataset).samples_of_rank(order, 4).tolist()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda state: {**state, "samples": 121}, "start 121 is beyond the end"),
            (lambda state: {**state, "samples": -1}, "start -1: it is at least 0"),
            (lambda state: {**state, "dataset": "0"}, "another data set"),
            (lambda state: {"epoch": 0, "seed": 0}, "not a state of dataprep.to_torch"),
            (lambda state: {**state, "epoch": "0"}, "not a state of dataprep.to_torch"),
            (lambda state: {**state, "of_worker": 4}, "a worker of torchdata's"),
            (lambda state: {**state, "order": "as stored"}, "that are read as stored"),
        ],
    )
    def test_refused(
        self,
        dataset: Dataset,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        message: str,
    ) -> None:
        """A state that does not fit these samples leaves the reader unchanged."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
        state = batches.state_dict()
        with pytest.raises(ConfigError, match=message):
            batches.load_state_dict(change(state))
        assert batches.state_dict() == state

    def test_other_samples(self, dataset: Dataset, tmp_path: Path) -> None:
        """Other shards, shares and orders are other samples, and a copy has the same ones."""
        options: dict[str, Any] = {"iterable": True, "batch_size": 4}
        state = dataprep.to_torch(dataset, **options).state_dict()
        stage(dataset.store.uri, tmp_path / "copy")
        dataprep.to_torch(dataprep.open(tmp_path / "copy"), **options).load_state_dict(state)
        stage(dataset.store.uri, tmp_path / "share", host=dataprep.Part(0, 2))
        for other in (dataset.of_shards([0, 1]), dataprep.open(tmp_path / "share")):
            with pytest.raises(ConfigError, match="belongs to another data set"):
                dataprep.to_torch(other, **options).load_state_dict(state)
        shutil.copytree(tmp_path / "copy", tmp_path / "alike")
        manifest = tmp_path / "alike" / "train.manifest.json"
        content = {**json.loads(manifest.read_text()), "fingerprint": "0" * 64}
        manifest.write_text(json.dumps(content))
        with pytest.raises(ConfigError, match="belongs to another data set"):
            dataprep.to_torch(dataprep.open(tmp_path / "alike"), **options).load_state_dict(state)
        for changed in ({"iterable": False}, {"shuffle": False}):
            with pytest.raises(ConfigError, match="use the same iterable, shuffle and format"):
                dataprep.to_torch(dataset, **{**options, **changed}).load_state_dict(state)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"seed": 1}, "saved with seed 0, not 1"),
            ({"world_size": 4}, "saved with world_size 2, not 4"),
            ({"global_batch": 8}, "saved with global_batch 13, not 8"),
            ({"rank": 1}, "takes 7 samples of a global batch, this one takes 6"),
        ],
        ids=["seed", "ranks", "batch", "rank"],
    )
    def test_a_sampler_goes_on_as_it_was_saved(
        self, dataset: Dataset, changed: dict[str, Any], message: str
    ) -> None:
        """The state of a sampler is that of one rank, and other settings are refused."""
        saved = {"rank": 0, "world_size": 2, "seed": 0, "global_batch": 13}

        def sampler(**options: Any) -> Any:
            return iter(dataprep.to_torch(dataset, **options).sampler)

        iterator, again, earlier = (sampler(**saved) for _ in range(3))
        assert len(list(islice(iterator, 7))) == 7
        state = iterator.state_dict()
        again.load_state_dict(state)
        rest = list(iterator)
        assert list(again) == rest
        del state["global_batch"], state["rank_batch"]
        earlier.load_state_dict(state)
        assert list(earlier) == rest
        with pytest.raises(ConfigError, match=message):
            sampler(**{**saved, **changed}).load_state_dict(again.state_dict())

    def test_a_state_of_batches_is_none_of_a_sampler(self, dataset: Dataset) -> None:
        """A state of batches is refused by a sampler, with the right use of the state."""
        state = dataprep.to_torch(dataset, batch_size=6).state_dict()
        sampler: Any = iter(dataprep.to_torch(dataset).sampler)
        with pytest.raises(ConfigError, match="does not belong to an iterator of images"):
            sampler.load_state_dict(state)

    @FEW_CORES
    @STATEFUL
    @pytest.mark.process
    @pytest.mark.smoke
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({}, None),
            ({"seed": 9}, "saved with seed 0, not 9"),
            ({"world_size": 3, "batch_size": 4}, "saved with world_size 2, not 3"),
            ({"batch_size": 5}, "saved with global_batch 12, not 10"),
        ],
        ids=["same", "seed", "ranks", "batch"],
    )
    def test_workers_go_on_as_they_were_saved(
        self,
        dataset: Dataset,
        changed: dict[str, Any],
        message: str | None,
    ) -> None:
        """The state of a worker counts its own samples, which differ with other settings."""
        stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
        saved = {"rank": 0, "world_size": 2, "seed": 0, "batch_size": 6}

        def opened(**options: Any) -> Any:
            batches = dataprep.to_torch(dataset, iterable=True, **options)
            return stateful(batches, batch_size=None, num_workers=2)

        first = iter(loader := opened(**saved))
        assert len(list(islice(first, 4))) == 4
        resumed = opened(**{**saved, **changed})
        resumed.load_state_dict(loader.state_dict())
        if message is None:
            assert list(map(str, resumed)) == list(map(str, first))
        else:
            with pytest.raises(ConfigError, match=message):
                next(iter(resumed))

    def test_shares_of_hosts_at_the_end(self, dataset: Dataset, tmp_path: Path) -> None:
        """Hosts with shares of different sizes end an epoch together."""
        states, hosts = [], []
        for host in range(2):
            stage(dataset.store.uri, tmp_path / str(host), host=dataprep.Part(host, 2))
            hosts.append(dataprep.open(tmp_path / str(host)))
        options: dict[str, Any] = {"iterable": True, "batch_size": 7, "world_size": 2}
        assert len(hosts[0]) != len(hosts[1])
        for host, share in enumerate(hosts):
            batches = dataprep.to_torch(share, rank=host, **options)
            list(batches)
            states.append(batches.state_dict())
        for host, share in enumerate(hosts):
            for state in states:
                resumed = dataprep.to_torch(share, rank=host, **options)
                resumed.load_state_dict(state)
                expected = dataprep.to_torch(share, rank=host, epoch=1, **options)
                assert list(map(str, resumed)) == list(map(str, expected))

    @pytest.mark.parametrize("options", [{"iterable": True}, {"batch_size": 8}, {}], ids=str)
    def test_a_start_beyond_the_end(self, dataset: Dataset, options: dict[str, Any]) -> None:
        """A start beyond the end is refused. The last step may be counted as a whole one."""
        with pytest.raises(ConfigError, match="start 500 is beyond the end of an epoch of 120"):
            dataprep.to_torch(dataset, start=500, **options)
        batches = dataprep.to_torch(dataset, batch_size=50, start=150)
        assert list(map(str, batches)) == list(
            map(str, dataprep.to_torch(dataset, batch_size=50, epoch=1))
        )

    @STYLES
    def test_drop_without_a_step(self, dataset: Dataset, iterable: bool) -> None:
        """Epochs without any full step are refused."""
        options: dict[str, Any] = {"iterable": iterable, "even": "drop", "world_size": 2, "rank": 0}
        with pytest.raises(ConfigError, match="even='drop' leaves no step"):
            dataprep.to_torch(dataset, batch_size=61, **options)
        batches = dataprep.to_torch(dataset, batch_size=50, start=100, **options)
        assert sum(1 for _ in batches) == 1
        with pytest.raises(ConfigError, match="even='drop' leaves no step"):
            dataprep.to_torch(dataset, iterable=iterable, even="drop", rank=0, world_size=121)


@FEW_CORES
@STATEFUL
@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_stateful_data_loader_over_epochs(
    dataset: Dataset, workers: int, persistent: bool, style: str
) -> None:
    """A loader continues in and after the third epoch, twice, and from the end of an epoch."""
    if persistent and not workers:
        pytest.skip("there are no workers to persist")
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def opened() -> Any:
        size = 8 if style == "batches" else None
        how: dict[str, Any] = {"iterable": style != "map", "batch_size": size}
        images: Any = dataprep.to_torch(dataset, **how, seed=4)
        options: dict[str, Any] = {"batch_size": None if size else 8}
        if style == "map":
            options["sampler"] = images.sampler
        return stateful(images, num_workers=workers, persistent_workers=persistent, **options)

    def batches_of(loader: Any, steps: int | None = None) -> list[Any]:
        return [tuple(images) for images, _ in islice(loader, steps)]

    loader = opened()
    epochs = [batches_of(loader) for _ in range(5)]
    assert len({tuple(epoch) for epoch in epochs}) == 5
    first = opened()
    for epoch in epochs[:2]:
        assert batches_of(first) == epoch
    assert batches_of(first, 4) == epochs[2][:4]
    second = opened()
    second.load_state_dict(first.state_dict())
    assert batches_of(second, 1) == epochs[2][4:5]
    third = opened()
    third.load_state_dict(second.state_dict())
    assert batches_of(third) == epochs[2][5:]
    fourth = opened()
    fourth.load_state_dict(third.state_dict())
    for loader in (third, fourth):
        assert batches_of(loader) == epochs[3]
        assert batches_of(loader) == epochs[4]


@STATEFUL
@pytest.mark.parametrize("size", [None, 7])
def test_a_state_from_the_end_is_saved_again(dataset: Dataset, size: int | None) -> None:
    """No epoch is skipped, even if nothing was read between loading and saving a state."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def opened(state: Any = None) -> Any:
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=size)
        loader = stateful(batches, batch_size=None if size else 7)
        if state:
            loader.load_state_dict(state)
        return loader

    def batches_of(loader: Any, steps: int | None = None) -> list[Any]:
        return [tuple(images) for images, _ in islice(loader, steps)]

    loader = opened()
    epochs = [batches_of(loader) for _ in range(3)]
    first = opened()
    assert batches_of(first, 18) == epochs[0]  # the last batch is smaller
    second = opened(first.state_dict())
    rest = batches_of(second)  # StatefulDataLoader may begin with the empty rest of the epoch
    assert rest in ([], epochs[1])
    third = opened(second.state_dict())
    assert batches_of(third) == epochs[1 + bool(rest)]
