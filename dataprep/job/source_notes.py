"""Tell the user how the source of a job was interpreted, and what is unusual about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from dataprep.job.report import Understood
from dataprep.job.request import Request
from dataprep.job.sample_labels import rows_of_samples
from dataprep.job.shard_bounds import clamp_target
from dataprep.job.split_plan import SplitPlan, classes_in_a_shard
from dataprep.job.split_planning import VALIDATION
from dataprep.labels import LabelSpace, are_whole, is_number
from dataprep.labels.imagenet_synsets import difference_from_imagenet
from dataprep.message_text import counted
from dataprep.name_encoding import by_bytes
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import promises_image
from dataprep.sources.folder_classes import NO_CLASS

_FEW_CLASSES_SHARE = 0.6
"""A shard has few classes if it has at most this share of the classes that shuffling would give."""

_SHOWN_CLASSES = 5  # in a note about the order of classes


def preflight_warnings(request: Request, label_space: LabelSpace) -> Iterator[str]:
    """Yield a sentence for each thing that is unusual about the source, classes or shard size.

    Args:
        request: the checked config and its source.
        label_space: the classes of the output and their labels.
    """
    listing = request.listing
    yield from listing.notes
    for glob in Exclusion(request.config.exclude).unmatched(listing):
        yield f"exclude: {glob!r} matches nothing in the source"
    images_without_class = [
        listing.names[row]
        for row, problem in listing.problems.items()
        if problem.reason == NO_CLASS and promises_image(listing.names[row])
    ]
    if images_without_class:
        images = counted(len(images_without_class), "image is")
        yield f"{images} in no class folder and skipped, such as {images_without_class[0]!r}"
    source_classes = set(listing.classes) - {""}
    labelled_classes = label_space.index.keys()
    unreadable = sorted(source_classes - labelled_classes)
    if unreadable:
        classes = counted(len(unreadable), "class")
        yield f"no file of {classes} can be read, such as {unreadable[0]!r}"
    absent = sorted(labelled_classes - source_classes)
    if absent and not request.config.unlabelled:
        classes = counted(len(absent), "class")
        yield f"the source has no sample of {classes}, such as {absent[0]!r}"
    synset_warning = difference_from_imagenet([label.synset for label in label_space.labels])
    if synset_warning is not None:
        yield synset_warning
    requested_bytes = int(request.config.shard_size)
    target_bytes = clamp_target(requested_bytes)
    if target_bytes != requested_bytes:
        sizes = f"{requested_bytes / 1e6:.3g} MB becomes {target_bytes / 1e6:.3g} MB"
        yield f"shard size {sizes}, so that no shard is outside 1 to 128 MB"


def describe_source(
    request: Request, label_space: LabelSpace, plans: Mapping[str, SplitPlan] | None = None
) -> Understood:
    """Describe how the source was interpreted, and which labels its samples get.

    Args:
        request: the checked config and its source.
        label_space: the classes of the output and their labels.
        plans: the plan of each split. With plans, the notes also describe unusual splits. None if
            the job is not planned yet.
    """
    config, listing = request.config, request.listing
    if config.unlabelled:  # the output may have classes, but the samples of this job have none
        label_space = LabelSpace(())
    is_folder = config.kind in ("imagefolder", "flat") or os.path.isdir(config.source)  # noqa: PTH112
    source = config.source
    if is_folder:
        source = f"{source.rstrip('/')}/"
    notes = [*listing.notes]
    notes += _numeric_order_notes(label_space)
    notes += _class_level_notes(request)
    notes += _source_order_notes(request, plans or {})
    return Understood(
        source=source,
        kind=listing.form or config.kind,
        classes=len(label_space.labels),
        images=len(rows_of_samples(listing)),
        label_order=_label_order(request, label_space),
        notes=tuple(notes),
    )


def _source_order_notes(request: Request, plans: Mapping[str, SplitPlan]) -> Iterator[str]:
    """Notes on a source whose order is kept: few classes in a shard, or an uneven split."""
    if not request.listing.in_runs:
        return
    for split, plan in plans.items():
        classes, shuffled_classes = classes_in_a_shard(plan)
        if plan.shard_count > 1 and classes <= _FEW_CLASSES_SHARE * shuffled_classes:
            yield (
                f"{split}: the source is sorted by class. A shard has {classes:,.3g} classes on "
                f"average; with shuffled samples it would have {shuffled_classes:,.3g}. Shard this "
                "output again with --kind records to shuffle it"
            )
    if VALIDATION in plans and request.config.validation is not None:
        validation = plans[VALIDATION]
        row_groups = counted(len(set(validation.containers)), "row group")
        share = validation.samples / sum(plan.samples for plan in plans.values())
        yield (
            f"{VALIDATION} has {row_groups} with {share:.1%} of the "
            f"samples, for --validation {request.config.validation}: the samples of a row group "
            "are not divided between splits, so that its classes may differ from those of "
            f"{request.config.split}"
        )


def _numeric_order_notes(label_space: LabelSpace) -> Iterator[str]:
    """A note if class names are numbers, but are ordered as texts."""
    names = [label.synset for label in label_space.labels]
    if not all(is_number(name) for name in names):
        return
    by_value = sorted(names, key=int)
    if names != by_value and names == by_bytes(names):
        shown_names = ", ".join(names[:_SHOWN_CLASSES])
        shown_by_value = ", ".join(by_value[:_SHOWN_CLASSES])
        yield (
            f"class names are numbers and ordered as texts: {shown_names}, ...; --set "
            f"labels.order=numeric orders them by value: {shown_by_value}, ..."
        )


def _class_level_notes(request: Request) -> Iterator[str]:
    """A note that names the level of folders that became the classes, if there are several."""
    listing = request.listing
    if request.config.kind not in ("imagefolder", "ilsvrc"):
        return
    for row in rows_of_samples(listing).tolist():
        name, class_name = listing.names[row], listing.classes[row]
        folders = name.split("/")[:-1]
        if len(folders) > 1 and class_name in folders:
            level = folders.index(class_name) + 1
            yield f"folders of level {level} are the classes, such as {class_name!r} in {name!r}"
            return


def _label_order(request: Request, label_space: LabelSpace) -> str:
    """The order in which classes are numbered, as a phrase for the summary."""
    names = [label.synset for label in label_space.labels]
    listing = request.listing
    if request.labelling.order:
        return "as labels.classes lists them"
    if listing.label_space is not None and names == list(listing.label_space.index):
        return "in numeric order" if are_whole(names) else listing.label_order
    if names == by_bytes(names):
        return "in the order of names"
    if all(is_number(name) for name in names) and names == sorted(names, key=int):
        return "in numeric order"
    return "as labels.json of the output numbers them"
