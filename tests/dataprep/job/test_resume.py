"""What an output holds already, against what is asked for now."""

from __future__ import annotations

from typing import Any

import pytest

from dataprep.config import ShardConfig
from dataprep.job.jobfile import differences
from dataprep.job.resume import content_of_split, with_defaults

CONFIG = ShardConfig(source="in", output="out")
OF_THE_FIRST_VERSION = {
    "kind": "imagefolder",
    "split": "train",
    "format": ["tfrecord"],
    "image": {
        "mode": "none",
        "size": None,
        "upscale": False,
        "quality": 95,
        "subsampling": "420",
        "orientation": "ignore",
        "check": "decode",
        "max_pixels": 89478485,
        "max_source_bytes": 268435456,
    },
    "shard_size": 67108864,
    "shuffle": True,
    "seed": 0,
    "validation": None,
    "label_offset": {},
}
"""What a job file held before there were layouts, boxes and more."""


def test_a_job_of_the_first_version_is_the_same_job() -> None:
    """Keys that came later had their defaults then: it can be resumed."""
    assert differences(with_defaults(OF_THE_FIRST_VERSION), content_of_split(CONFIG, "train")) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"layout": "tfds"}, 'layout: "imagenet" before, "tfds" now'),
        ({"boxes": "b.csv"}, "boxes.format: nothing before"),
        ({"image": {"quality": 90}}, "image.quality: 95 before, 90 now"),
    ],
)
def test_another_job_is_another(changes: dict[str, Any], difference: str) -> None:
    """Nor do defaults hide a key that is set now."""
    asked = ShardConfig.model_validate({"source": "in", "output": "out", **changes})
    found = differences(with_defaults(OF_THE_FIRST_VERSION), content_of_split(asked, "train"))
    assert any(difference in line for line in found)
