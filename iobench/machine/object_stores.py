"""Object stores, as far as the endpoint tells whose they are; no host name is kept.

Endpoints: AWS, https://docs.aws.amazon.com/general/latest/gr/s3.html; S3 Express One Zone
buckets end in ``--x-s3``; Google, ``storage.googleapis.com``; Cloudflare R2,
``ACCOUNT.r2.cloudflarestorage.com``; Backblaze B2, ``s3.REGION.backblazeb2.com``; Wasabi,
``s3.REGION.wasabisys.com``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from dataprep.stores import StoreOptions

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
    """``kind``, ``name``, ``why``, ``encrypted`` (TLS) and, for AWS, ``region``.

    Args:
        uri: ``s3://bucket/prefix``, or that of a store that another package brings.
        endpoint_url: the URL that requests go to; None where it is not known.
        region: the bucket's, where it is known.
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
    kind, name = "s3-compatible", "S3-compatible" + _where(host)
    why = "its endpoint is none of a known provider"
    for pattern, known, its_name in _PROVIDERS:
        if re.fullmatch(pattern, host):
            kind, name, why = known, its_name, f"its endpoint is one of {its_name}"
    if kind == "aws-s3" and re.match(r"s3://[^/]*--x-s3(/|$)", uri):
        kind, name, why = "aws-s3-express", "Amazon S3 Express One Zone", "its bucket's name"
    found = {"kind": kind, "name": name, "why": why, "encrypted": parts.scheme == "https"}
    if kind.startswith("aws-s3") and region and _REGION.fullmatch(region):
        found["region"] = region
    return found


def endpoint_of(options: StoreOptions) -> tuple[str | None, str | None]:
    """URL and region as boto3 finds them in options, environment or profile; None if unknown.

    No request is sent.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(signature_version="s3v4")
    try:
        session = boto3.Session(profile_name=options.profile, region_name=options.region)
        client = session.client("s3", endpoint_url=options.endpoint_url, config=config)
    except (BotoCoreError, ValueError, OSError):
        return options.endpoint_url, options.region
    client.close()
    return client.meta.endpoint_url, session.region_name


def _where(host: str) -> str:
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        private = ", in a private network" if address.is_private else ""
        return ", on this machine" if address.is_loopback else private
    return ""
