"""PURE. Find the samples of a WebDataset tar: neighbouring members with the same key.

The key of a member is its path up to the first dot of its base name, as in the WebDataset library.
For example, ``a/0001.seg.png`` has the key ``a/0001`` and the extension ``seg.png``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import CLUTTER, is_clutter, promises_image
from dataprep.sources.label_classes import MAX_CLASS_CHARACTERS
from dataprep.sources.protocol import Located, Problem
from dataprep.sources.tar_index import MAX_CONTENT_BYTES

IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp")
MAX_JSON_BYTES = 2**20
"""Only ``.json`` members that are smaller than this are read for the class of a sample."""

NO_IMAGE = "no image (.jpg, .jpeg, .png or .webp) in the sample"
NO_EXTENSION = "no extension, so that it belongs to no sample"
REPEATED = "another sample of its tar has the same key"
SEVERAL = (
    "several images in the sample: leave one kind of them out, as in --exclude '*.png', to read "
    "the other"
)
OTHER_EXTENSION = (
    "its extension, which begins at the first dot of the name, is not .jpg, .jpeg, .png or .webp"
)

_has_control_characters = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]").search


class Member(NamedTuple):
    """A member of a tar.

    Attributes:
        entry: the path of the member, below a folder with the name of its tar, and its location.
            The container is empty for a file that is not an archive.
        problem: why the member must not be opened; None if it may be opened.
        content: the content of the member, if it is in the index.
    """

    entry: Located
    problem: Problem | None = None
    content: bytes | None = None

    @property
    def name(self) -> str:
        """The path of the member."""
        return self.entry.name


class SampleRow(NamedTuple):
    """An entry of the listing: the image of a sample, or a member that is not a sample.

    Attributes:
        member: the image, or the other member.
        problem: why the member is not a sample; None if it is a sample.
        label: the class of the sample, as a number or a name; empty if it has no class.
    """

    member: Member
    problem: Problem | None = None
    label: str = ""


@dataclass
class SampleReader:
    """Groups the members of tars into samples.

    Attributes:
        label_key: the key of the class in ``.json`` members; empty if ``.cls`` members have the
            class.
        exclusion: the globs of the members that the job leaves out.
        ignored: the number of unused members, by their extension.
        left_out: members that the job leaves out and that do not have names of images.
        json_keys: if ``.cls`` members have the class: the keys of the first ``.json`` member that
            could be read and has keys. They are candidates for ``label_key``.
    """

    label_key: str = ""
    exclusion: Exclusion = field(default_factory=Exclusion)
    ignored: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    json_keys: tuple[str, ...] = ()

    def rows(self, members: Sequence[Member]) -> Iterator[SampleRow]:
        """Yield the samples of one tar, and the members that belong to no sample.

        Members that the job leaves out are yielded if they have names of images. Other members that
        it leaves out are added to ``left_out``.
        """
        samples: list[dict[str, Member]] = []
        keys: list[str] = []
        for member in members:
            excluded = self.exclusion.by_glob(member.name)
            if excluded and promises_image(member.name):
                yield SampleRow(member, Problem("skipped", excluded))
                continue
            if excluded:
                self.left_out.append(member.name)
                continue
            key, extension = key_and_extension(member.name)
            if is_clutter(member.name) and member.problem is None:
                yield SampleRow(member, Problem("skipped", CLUTTER))
            elif not extension:
                yield SampleRow(member, member.problem or Problem("skipped", NO_EXTENSION))
            elif keys and keys[-1] == key and extension not in samples[-1]:
                samples[-1][extension] = member
            else:
                keys.append(key)
                samples.append({extension: member})
        counts = Counter(keys)
        for key, sample in zip(keys, samples, strict=True):
            yield from self._rows_of(sample, is_repeated=counts[key] > 1)

    def _rows_of(self, sample: dict[str, Member], *, is_repeated: bool) -> Iterator[SampleRow]:
        """Yield the image of a sample. If it has none or several, yield members with a problem.

        Args:
            sample: the members of the sample by their extension.
            is_repeated: whether another sample of the tar has the same key.
        """
        images = [sample[extension] for extension in IMAGE_EXTENSIONS if extension in sample]
        problem = None
        if not images:
            images = [member for member in sample.values() if promises_image(member.name)]
            problem = Problem("failed", OTHER_EXTENSION)
        if not images:
            first_member = next(iter(sample.values()))
            images = [first_member]
            problem = Problem("failed", NO_IMAGE)
        if is_repeated:
            problem = Problem("failed", REPEATED)
        elif problem is None and len(images) > 1:
            problem = Problem("failed", SEVERAL)
        self._count_ignored(sample, images)
        if problem is not None:
            for image in images:
                yield SampleRow(image, image.problem or problem)
            return
        (image,) = images
        label, reason = self._label_of(sample)
        failure = Problem("failed", reason) if reason else None
        yield SampleRow(image, image.problem or failure, label)

    def _count_ignored(self, sample: dict[str, Member], images: Sequence[Member]) -> None:
        """Count the members that give neither an image nor a class, and set ``json_keys``."""
        class_extension = "json" if self.label_key else "cls"
        for extension, member in sample.items():
            if extension != class_extension and member not in images:
                self.ignored[extension] += 1
        if "json" in sample and not (self.label_key or self.json_keys):
            content, _ = _json_of(sample["json"])
            self.json_keys = tuple(content or ())

    def _label_of(self, sample: dict[str, Member]) -> tuple[str, str]:
        """The class of a sample and an empty text; or an empty class and the reason.

        Both are empty if the sample has no member for the class.
        """
        if not self.label_key:
            return _text_of(sample["cls"]) if "cls" in sample else ("", "")
        if "json" not in sample:
            return "", ""
        content, reason = _json_of(sample["json"])
        if content is None:
            return "", reason
        if self.label_key not in content:
            return "", f"its .json has no key {self.label_key!r} (webdataset.label)"
        value = content[self.label_key]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return "", f"{self.label_key!r} of its .json is no whole number and no text"
        return _class_in(str(value), f"{self.label_key!r} of its .json")


def key_and_extension(name: str) -> tuple[str, str]:
    """Return the key of the sample that a member belongs to, and its extension in lower case."""
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def _text_of(member: Member) -> tuple[str, str]:
    """The class in a ``.cls`` member and an empty text; or an empty class and the reason."""
    if member.content is None:
        return "", _reason_of_no_content(member, ".cls", MAX_CONTENT_BYTES)
    try:
        return _class_in(member.content.decode("utf-8-sig"), "its .cls")
    except UnicodeDecodeError:
        return "", "its .cls is no UTF-8 text"


def _json_of(member: Member) -> tuple[dict[str, object] | None, str]:
    """The object in a ``.json`` member and an empty text; or None and the reason."""
    if member.content is None:
        return None, _reason_of_no_content(member, ".json", MAX_JSON_BYTES)
    try:
        content = json.loads(member.content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None, "its .json is no JSON"
    if not isinstance(content, dict):
        return None, "its .json is no JSON object"
    return content, ""


def _reason_of_no_content(member: Member, title: str, max_bytes: int) -> str:
    """Why the content of a member was not read.

    Args:
        member: the member.
        title: the member, as the reason calls it.
        max_bytes: the size from which members are not read.
    """
    if member.problem is not None:
        return f"its {title}: {member.problem.reason}"
    return f"its {title} has {max_bytes / 1024:,.0f} KiB or more"


def _class_in(text: str, title: str) -> tuple[str, str]:
    """The class in a text, without blanks at its ends; or an empty class and the reason."""
    text = text.strip()
    if not text:
        return "", f"{title} is empty"
    if len(text) > MAX_CLASS_CHARACTERS:
        return "", f"{title} has more than {MAX_CLASS_CHARACTERS:,} characters"
    if _has_control_characters(text):
        return "", f"{title} has several lines or control characters"
    return text, ""
