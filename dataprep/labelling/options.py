"""Which files say what the classes are."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LabelOptions(BaseModel):
    """Files about classes, each a path or URI; what a file is, its content tells.

    ``ground_truth`` gives samples their class by name: ILSVRC's devkit (the ``.tar.gz``, its
    folder, or ``ILSVRC2012_validation_ground_truth.txt``, which needs ``meta``),
    ``synset_labels.txt``, Kaggle's ``LOC_val_solution.csv``, or a table of names and classes. It
    wins over folders.
    ``meta`` is the devkit's ``meta.mat``, looked for beside the ground truth where not given.
    ``map`` renames or merges classes: a table or JSON object of old and new names; a sample
    whose class becomes empty is skipped.
    ``classes`` fixes which label each class has: a file of classes in the order of the labels,
    or the word ``ilsvrc2012`` for the 1,000 synsets. Without it they are sorted.
    ``texts`` says what people call the classes: ``LOC_synset_mapping.txt``, the devkit or its
    ``meta.mat``, a table or JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    ground_truth: str | None = None
    meta: str | None = None
    map: str | None = None
    classes: str | None = None
    texts: str | None = None
