"""PURE. A listed path into the name of a sample: relative to the root wherever it lies below.

One file has one name however it was written, so that the order of a data set, which comes from
the names, is that of the same files in class folders.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import NamedTuple

from dataprep.credentials import without_credentials
from dataprep.errors import SourceError
from dataprep.names import escape

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Keys may hold question marks, and names of crawled images do.
_SIGNED = re.compile(r"[?&](x-amz-(signature|credential|security-token)|awsaccesskeyid)=", re.I)
LEAVES = "its path leaves the root of the listing"


class Place(NamedTuple):
    """A name, and why it is refused, if it is."""

    name: str
    problem: str = ""


class PathRule:
    """How paths of one listing become names; ``root`` is a path or URI."""

    def __init__(self, root: str) -> None:
        self._local = not _SCHEME.match(root)
        # Only for comparison: what is relative stays so.
        self._below = (os.path.abspath(root) if self._local else root).rstrip("/") + "/"  # noqa: PTH100

    def __call__(self, path: str) -> Place:
        """The place of ``path``.

        Raises:
            SourceError: an address that is neither a path nor on S3, or that carries credentials,
                which would stand in the table of samples.
        """
        scheme = _SCHEME.match(path)
        if scheme:
            return self._of_uri(path, scheme[1].lower())
        if "\0" in path:
            return Place(path, "its path holds a zero byte")
        name = posixpath.normpath(path)
        if name.startswith("/"):
            name = "/" + name.lstrip("/")
            return Place(name.removeprefix(self._below) if self._local else name)
        if name in ("..", ".") or name.startswith("../"):
            return Place(path, LEAVES if name != "." else "its path is that of a folder")
        return Place(name)

    def _of_uri(self, path: str, scheme: str) -> Place:
        if scheme == "file":
            return self(path[len("file://") :])
        if scheme != "s3":
            advice = (
                "addresses on the web are not read: copy the images to a disk or to S3 first, "
                "and list them there"
                if scheme in ("http", "https")
                else "a listing has paths and s3:// addresses"
            )
            raise SourceError(f"{without_credentials(escape(path))}: {advice}")
        bucket, _, key = path[len("s3://") :].partition("/")
        if "@" in bucket or _SIGNED.search(key):
            shown = without_credentials(escape(path))
            raise SourceError(
                f"{shown}: an address must not carry a user, password or signature: credentials "
                "come from the environment or from a profile"
            )
        if not bucket or not key:
            return Place(path, "it is not s3://BUCKET/KEY")
        return Place(path.removeprefix(self._below))


def split_name(name: str) -> tuple[str, str]:
    """The root at which a name is looked up, and the key there: empty for the listing's own."""
    if name.startswith("s3://"):
        bucket, _, key = name[len("s3://") :].partition("/")
        return f"s3://{bucket}", key
    return ("/", name[1:]) if name.startswith("/") else ("", name)
