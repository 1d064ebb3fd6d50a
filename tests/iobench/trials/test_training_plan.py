"""The settings of a training loop, and the points that follow from them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from iobench.results.trial import Params
from iobench.trials.training_settings import Training, training_points

PACED = {"consumer": "paced", "images_per_s": 100, "loader": "mock"}


def points(**settings: Any) -> list[Params]:
    """Return the points of one group."""
    return list(training_points(Training.model_validate(settings)))


def test_one_point_an_input() -> None:
    """Points are in the order of the inputs; resident data has no location."""
    planned = points(inputs=["synthetic", "warm", "cold", "store"], data="shards-4MB")
    assert [(point["input"], point["data"]) for point in planned] == [
        ("synthetic", ""),
        ("warm", "shards-4MB@disk"),
        ("cold", "shards-4MB@disk"),
        ("store", "shards-4MB@s3"),
    ]
    assert {point["over"] for point in planned} == {"shards-4MB@disk"}


def test_rungs_in_memory_are_filled_from_the_data() -> None:
    """They are filled from the disk, or from the store if nothing local is read."""
    rungs = ["synthetic", "copy", "collate", "augment", "decode"]
    local = points(inputs=[*rungs, "warm", "store"])
    data = [point["data"] for point in local]
    assert data == ["", "", *["shards@disk"] * 4, "shards@s3"]
    assert {point["over"] for point in local} == {"shards@disk"}
    remote = points(inputs=[*rungs, "store"])
    assert {point["data"] for point in remote} == {"", "shards@s3"}
    assert all(point["data"] == point["over"] == "" for point in points(**PACED))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"loader": "tf-data", "consumer": "tensorflow", "inputs": ["copy", "decode"]},
            "inputs copy, decode are for torch's loaders .* loader tf-data has the inputs",
        ),
        ({**PACED, "inputs": "collate"}, "loader mock has the inputs"),
        ({"consumer": "mxnet", "inputs": "augment"}, "consumer mxnet does not take"),
        ({"devices": 2, "inputs": "copy"}, r"one device, not for several \(devices: 2\)"),
        ({"data": "pixels", "inputs": "decode"}, "input decode is for encoded images"),
    ],
)
def test_rungs_that_a_loop_cannot_have_are_refused(wrong: dict[str, Any], message: str) -> None:
    """The error says which rungs there are, on one line."""
    with pytest.raises(ValidationError, match=message):
        Training.model_validate(wrong)


def test_a_point_carries_every_setting() -> None:
    """Every setting of a loop reaches the process that runs it."""
    settings = {"preset": "A100"}, {"images_per_s": 100.0}
    carried = {*points(devices=2)[0], *points(epochs=2)[0], *points(**PACED, accelerators=2)[0]}
    for device in settings:
        carried |= points(consumer="paced", threads=3, item_s=0.1, **device)[0].keys()
    for access in ("file", "pipe"):
        carried |= points(inputs="store", access=access)[0].keys()
    assert set(Training.model_fields) - {"inputs", "normalise_on"} <= carried
    assert "normalise" in carried


@pytest.mark.parametrize(
    ("settings", "by_loader"),
    [
        ({}, False),
        *(({"loader": name}, False) for name in ("torch-map", "torch-folder", "dali", "dali-gpu")),
        ({"consumer": "torch", "loader": "mock"}, True),
        ({"consumer": "tensorflow", "loader": "tf-data"}, True),
        ({"consumer": "mxnet", "loader": "mxnet-record"}, True),
        ({"consumer": "paced", "preset": "A100"}, False),
        ({"consumer": "paced", "preset": "A100", "loader": "mock"}, True),
        ({"normalise_on": None}, False),
        ({"normalise_on": "host"}, True),
        ({"consumer": "paced", "preset": "A100", "normalise_on": "host"}, True),
        ({"consumer": "tensorflow", "loader": "tf-data", "normalise_on": "device"}, False),
        ({"normalise": True}, True),
        ({"consumer": "paced", "preset": "A100", "normalise": False}, False),
    ],
    ids=str,
)
def test_the_device_normalises_where_loops_in_torch_can_have_it(
    settings: dict[str, Any], by_loader: bool
) -> None:
    """The default, ``normalise_on`` and the key of earlier configs agree with a saved config."""
    loop = Training.model_validate({"inputs": "warm", **settings})
    assert loop.normalise_on == ("host" if by_loader else "device")
    assert [point["normalise"] for point in training_points(loop)] == [by_loader]
    assert Training.model_validate(loop.model_dump(mode="json")) == loop


def test_a_label_tells_groups_apart() -> None:
    """The label is ``group`` if given, and else has model, device and loader."""
    assert Training(group="mine").label == "mine"
    assert Training().label == "ResNet-50 on torch, torch-iterable"
    loop = Training(inputs=("store",), access="pipe")
    assert loop.label == "ResNet-50 on torch, torch-iterable, access pipe"
    assert Training(devices="all").label == "ResNet-50 on torch, all devices, torch-iterable"
    assert Training(devices=2).label == "ResNet-50 on torch, 2 devices, torch-iterable"
    assert Training.model_validate(PACED).label == "ResNet-50 on an emulated device, mock"
    preset = Training(consumer="paced", preset="H100", loader="null")
    assert preset.label == "ResNet-50 on an emulated H100, null"


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        *[(name, "resnet50") for name in ("V100", "V100-mxnet-64", "V100-tensorflow-64")],
        *[(name, "resnet50") for name in ("A100", "H100", "A100-mlperf", "H100-mlperf")],
        *[(name, "retinanet") for name in ("B200-mlperf", "MI355-mlperf")],
    ],
)
def test_a_preset_brings_its_model(preset: str, model: str) -> None:
    """A preset names the model, so that a config need not."""
    loop = Training.model_validate({"consumer": "paced", "preset": preset})
    assert loop.model == model
    assert Training.model_validate(loop.model_dump()) == loop
    (point,) = points(consumer="paced", preset=preset, inputs="cold")
    assert (point["preset"], point["model"]) == (preset, model)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"consumer": "nobody"}, "nobody"),
        ({"normalise": True, "normalise_on": "host"}, "give normalise_on alone, device or host"),
        ({"normalise": "device"}, "give normalise_on alone, device or host"),
        (
            {"consumer": "mxnet", "loader": "mxnet-record", "normalise_on": "device"},
            "loader mxnet-record cannot hand over uint8: use normalise_on: host",
        ),
        ({"loader": "nobody"}, "no loader 'nobody': use one of .*mock.*torch-map"),
        ({"consumer": "paced"}, "needs either preset"),
        ({"consumer": "paced", "preset": "H100", "images_per_s": 9}, "needs either preset"),
        (
            {"consumer": "paced", "preset": "H9000"},
            "no preset 'H9000': the presets are V100, .*-mlperf",
        ),
        (
            {"consumer": "paced", "preset": "B200-mlperf", "model": "resnet50"},
            "preset 'B200-mlperf' is a figure for retinanet, not resnet50",
        ),
        (
            {"consumer": "paced", "preset": "H100", "model": "lenet"},
            "preset 'H100' is a figure for resnet50, not lenet",
        ),
        ({"model": "retinanet"}, "model retinanet is only emulated: use consumer paced, not torch"),
        ({"inputs": []}, "inputs"),
        ({"inputs": "lukewarm"}, "inputs"),
        ({"data": "shards@disk"}, "data"),
        ({"steps": 3}, "steps"),
        ({"model": "resnet"}, "model"),
        ({"bacth_size": 3}, "bacth_size"),
        ({"devices": 0}, "devices"),
        ({"devices": "some"}, "devices"),
        ({"devices": []}, "devices"),
        ({"devices": 2, **PACED}, "consumer paced trains on one device"),
        ({"devices": "all", "consumer": "tensorflow"}, "trains on one device"),
        ({"devices": "all", "device": "cpu"}, "on a processor give a number"),
        ({"evict": "first-epoch"}, "give epochs: 2 or more"),
        ({**PACED, "accelerators": 0}, "accelerators"),
        ({**PACED, "accelerators": 65}, "accelerators"),
        ({**PACED, "accelerators": []}, "accelerators"),
        (
            {"accelerators": 2},
            "accelerators are emulated: they are for consumer paced, not for torch; use devices",
        ),
        (
            {**PACED, "loader": "torch-map", "accelerators": [1, 2], "inputs": "decode"},
            r"one device, not for several \(accelerators: ",
        ),
    ],
)
def test_wrong_groups_are_refused(wrong: dict[str, Any], message: str) -> None:
    """The error says what is wrong before anything is measured."""
    with pytest.raises(ValidationError, match=message):
        Training.model_validate(wrong)


def test_one_device_is_no_word() -> None:
    """Trials on one device have no such parameter, as in earlier versions."""
    assert all("devices" not in point for point in (*points(), *points(devices=1)))
    assert {point["devices"] for point in points(devices="all")} == {"all"}
    assert {point["devices"] for point in points(devices=4, device="cpu")} == {4}
    planned = points(devices=[1, 2, 2, 4], inputs="warm")
    assert [point.get("devices", 1) for point in planned] == [1, 2, 4]
    assert len({point["group"] for point in planned}) == 3
    named = points(devices=[1, 2], inputs="warm", group="mine")
    assert [point["group"] for point in named] == ["mine, 1 device", "mine, 2 devices"]


def test_each_number_of_accelerators_is_a_loop() -> None:
    """1 is compared with the others; without the key there is no such parameter."""
    paced = points(**PACED, accelerators=[1, 2, 2, 8], inputs="warm")
    assert [point["accelerators"] for point in paced] == [1, 2, 8]
    assert [point["group"] for point in paced] == [
        "ResNet-50 on an emulated device, 1 accelerator, mock",
        "ResNet-50 on an emulated device, 2 accelerators, mock",
        "ResNet-50 on an emulated device, 8 accelerators, mock",
    ]
    named = points(**PACED, accelerators=[1, 2], inputs="warm", group="mine")
    assert [point["group"] for point in named] == ["mine, 1 accelerator", "mine, 2 accelerators"]
    assert all("accelerators" not in point for point in points(**PACED))
    assert [point["accelerators"] for point in points(**PACED, accelerators=4)] == [4] * 3


def test_one_epoch_is_no_word() -> None:
    """Trials of one epoch have no such parameter, as in earlier versions."""
    assert all({"epochs", "evict"}.isdisjoint(point) for point in points())
    planned = points(epochs=3, evict="first-epoch")
    assert {(point["epochs"], point["evict"]) for point in planned} == {(3, "first-epoch")}
    assert Training(epochs=3).label.endswith("torch-iterable, 3 epochs, evict every-epoch")


class TestAccess:
    """The access mode of the input ``store``."""

    def test_it_is_of_the_store_alone(self) -> None:
        """Other inputs have no access mode."""
        planned = points(inputs=["synthetic", "cold", "store"], access="file", connections=3)
        assert [point.get("access") for point in planned] == [None, None, "file"]
        assert [point.get("connections") for point in planned] == [None, None, 3]
        assert all("shuffle_buffer" not in point for point in planned)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"access": "file"}, "access file is for input store: add store to inputs"),
            ({"access": "lazy", "inputs": "store"}, "is for loader torch-map, not for torch-it"),
            ({"access": "mount", "inputs": "store"}, "Input should be"),
        ],
    )
    def test_settings_without_a_use_are_refused(
        self, settings: dict[str, Any], message: str
    ) -> None:
        """The error says what the setting is for."""
        with pytest.raises(ValidationError, match=message):
            Training.model_validate(settings)
