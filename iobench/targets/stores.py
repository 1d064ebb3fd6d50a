"""PURE. Object stores as far as their endpoint says whose they are; no host name is kept.

Endpoints: AWS, https://docs.aws.amazon.com/general/latest/gr/s3.html; S3 Express One Zone
buckets end in ``--x-s3``; Google, ``storage.googleapis.com``; Cloudflare R2,
``ACCOUNT.r2.cloudflarestorage.com``; Backblaze B2, ``s3.REGION.backblazeb2.com``; Wasabi,
``s3.REGION.wasabisys.com``.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

_PROVIDERS = (
    (r"(?:.*\.)?amazonaws\.com(?:\.cn)?", "aws-s3", "Amazon S3"),
    (r"(?:.*\.)?storage\.googleapis\.com", "google-cloud-storage", "Google Cloud Storage"),
    (r".*\.r2\.cloudflarestorage\.com", "cloudflare-r2", "Cloudflare R2"),
    (r".*\.backblazeb2\.com", "backblaze-b2", "Backblaze B2"),
    (r".*\.wasabisys\.com", "wasabi", "Wasabi"),
)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


def describe_store(
    uri: str, endpoint_url: str | None, region: str | None = None, *, own: bool = False
) -> dict[str, Any]:
    """``kind``, ``name``, ``why``, ``encrypted`` (TLS) and, of AWS, ``region``.

    Args:
        uri: ``s3://bucket/prefix``, of which only the kind of bucket is told; or of a store that
            another package brings, of which only the scheme is.
        endpoint_url: that requests go to; None where it is not known.
        region: of the bucket, where it is known.
        own: a server that the run itself starts.
    """
    if own:
        why = "an S3 server (moto) that the run itself starts"
        return {"kind": "own-server", "name": "S3 server of this run", "why": why}
    scheme = uri.partition("://")[0]
    if scheme != "s3":
        told = scheme if re.fullmatch(r"[a-z][a-z0-9+.-]{0,15}", scheme) else "unknown"
        return {"kind": told, "name": told, "why": "a store that another package brings"}
    if endpoint_url is None:
        return {"kind": "unknown", "name": "unknown", "why": "its endpoint could not be told"}
    parts = urlsplit(endpoint_url)
    host = (parts.hostname or "").lower().rstrip(".")
    kind, name, why = _provider(host)
    if kind == "aws-s3" and _bucket(uri).endswith("--x-s3"):
        kind, name, why = "aws-s3-express", "Amazon S3 Express One Zone", "its bucket's name"
    found = {"kind": kind, "name": name, "why": why, "encrypted": parts.scheme == "https"}
    if kind.startswith("aws-s3") and region and _REGION.fullmatch(region):
        found["region"] = region
    return found


def _provider(host: str) -> tuple[str, str, str]:
    for pattern, kind, name in _PROVIDERS:
        if re.fullmatch(pattern, host):
            return kind, name, f"its endpoint is one of {name}"
    where = _where(host)
    return "s3-compatible", "S3-compatible" + where, "its endpoint is none of a known provider"


def _where(host: str) -> str:
    if host == "localhost":
        return ", on this machine"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if address.is_loopback:
        return ", on this machine"
    return ", in a private network" if address.is_private else ""


def _bucket(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[0]
