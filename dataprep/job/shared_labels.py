"""The label space that all splits of an output share, and what a later split asks of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataprep import keys
from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, OutputConflict
from dataprep.job.request import Request
from dataprep.labels import LabelSpace
from dataprep.stores import Store


def label_space_for(
    request: Request, store: Store, note: Callable[[str], None], remove: Sequence[str] = ()
) -> LabelSpace:
    """The output's label space if another split made one, else this source's own.

    Raises:
        OutputConflict: this source has classes that the output's label space lacks, or asks for
            other labels; or labels.json is gone.
    """
    stored = keys.splits(info.key for info in store.list())
    if not stored - {*request.splits, *remove}:
        return request.own_labels()
    try:
        shared = LabelSpace.from_json(store.get(keys.LABELS))
    except ObjectNotFound:
        raise OutputConflict(
            f"{keys.LABELS} is gone from {store.uri}, which holds other splits: put it back, or "
            "run the job again that began this output"
        ) from None
    require_given(request, shared, note)
    shared.require(request.own_labels().index, request.config.split)
    return shared


def require_given(request: Request, shared: LabelSpace, note: Callable[[str], None]) -> None:
    """Refuse another order of classes than ``shared``; say where texts of it are others.

    Texts are words for people, no reason to stop: the records of splits that are there have theirs.

    Raises:
        OutputConflict: it names the first label that differs.
    """
    labelling = request.labelling
    if labelling.order:
        shared.require_order(labelling.order, request.config.split)
    if others := shared.other_texts(labelling.texts):
        first = others[0]
        note(
            f"labels.json of this output calls {counted(len(others), 'class')} otherwise than the "
            f"label files here, and is kept: {first.synset!r} is {first.text!r} there and "
            f"{labelling.texts[first.synset]!r} here"
        )
