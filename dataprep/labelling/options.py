"""Which files say what the classes are."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LabelOptions(BaseModel):
    """Files about classes, each a path or URI; what a file is, its content tells."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    ground_truth: str | None = None
    """The class of each sample, by its name; it wins over folders. ILSVRC's devkit (the
    `.tar.gz`, its folder, or `ILSVRC2012_validation_ground_truth.txt`, which needs `meta`),
    `synset_labels.txt`, Kaggle's `LOC_val_solution.csv`, or a table of names and classes."""

    meta: str | None = None
    """The devkit or its `meta.mat`; looked for beside the ground truth where not given."""

    map: str | None = None
    """New names for classes, to rename or merge them: a table or JSON object of old and new
    ones. A sample whose class becomes empty is skipped."""

    classes: str | None = None
    """Which label each class has: a file of classes in the order of the labels or with their
    numbers, a `labels.json`, or the word `ilsvrc2012` for the 1,000 synsets. Without it classes
    are sorted."""

    texts: str | None = None
    """What people call the classes: `LOC_synset_mapping.txt`, the devkit or its `meta.mat`, a
    table or JSON."""
