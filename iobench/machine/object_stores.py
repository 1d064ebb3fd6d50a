"""Recognise the provider of an object store by its endpoint.

The description has no host name, since results are shared. The endpoints of the providers are:

- Amazon: https://docs.aws.amazon.com/general/latest/gr/s3.html (names of S3 Express One Zone
  buckets end in ``--x-s3``);
- Google: ``storage.googleapis.com``;
- Cloudflare R2: ``ACCOUNT.r2.cloudflarestorage.com``;
- Backblaze B2: ``s3.REGION.backblazeb2.com``;
- Wasabi: ``s3.REGION.wasabisys.com``.
"""

from __future__ import annotations

import re
from typing import NotRequired, TypedDict
from urllib.parse import urlsplit

from dataprep.errors import DataprepError
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import S3Bucket


class StoreDescription(TypedDict):
    """An object store, under the keys of results.

    Attributes:
        kind: the kind of store, such as ``aws-s3``.
        name: the name of this kind for readers.
        why: the evidence for this kind.
        encrypted: whether requests use TLS. It is left out if the endpoint is unknown.
        region: the region of a bucket at AWS. It is left out if it is unknown.
    """

    kind: str
    name: str
    why: str
    encrypted: NotRequired[bool]
    region: NotRequired[str]


# Patterns of the host in an endpoint, the kind of store, and the name of the provider.
_PROVIDERS = (
    (r"(?:.*\.)?amazonaws\.com(?:\.cn)?", "aws-s3", "Amazon S3"),
    (r"(?:.*\.)?storage\.googleapis\.com", "google-cloud-storage", "Google Cloud Storage"),
    (r".*\.r2\.cloudflarestorage\.com", "cloudflare-r2", "Cloudflare R2"),
    (r".*\.backblazeb2\.com", "backblaze-b2", "Backblaze B2"),
    (r".*\.wasabisys\.com", "wasabi", "Wasabi"),
)
OWN_SERVER: StoreDescription = {
    "kind": "own-server",
    "name": "S3 server of this run",
    "why": "an S3 server (moto) that the run itself starts",
}
"""The description of the S3 server that a run starts."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


def describe_store(
    uri: str, endpoint_url: str | None, region: str | None = None
) -> StoreDescription:
    """Recognise an object store by its address and its endpoint.

    Args:
        uri: ``s3://bucket/prefix``, or the address of a store of another package.
        endpoint_url: the URL that requests go to; None if unknown.
        region: the region of the bucket; None if unknown.
    """
    scheme = uri.partition("://")[0]
    if scheme != "s3":
        name = scheme if re.fullmatch(r"[a-z][a-z0-9+.-]{0,15}", scheme) else "unknown"
        return {"kind": name, "name": name, "why": "a store of another package"}
    if endpoint_url is None:
        return {"kind": "unknown", "name": "unknown", "why": "its endpoint is not known"}
    parts = urlsplit(endpoint_url)
    host = (parts.hostname or "").lower().rstrip(".")
    suffix = ", on this machine" if host in _LOOPBACK else ""
    kind, name = "s3-compatible", f"S3-compatible{suffix}"
    why = "its endpoint belongs to no known provider"
    for pattern, provider_kind, provider in _PROVIDERS:
        if re.fullmatch(pattern, host):
            kind, name, why = provider_kind, provider, f"its endpoint belongs to {provider}"
    if kind == "aws-s3" and re.match(r"s3://[^/]*--x-s3(/|$)", uri):
        kind, name, why = "aws-s3-express", "Amazon S3 Express One Zone", "its bucket's name"
    description: StoreDescription = {
        "kind": kind,
        "name": name,
        "why": why,
        "encrypted": parts.scheme == "https",
    }
    if kind.startswith("aws-s3") and region and _REGION.fullmatch(region):
        description["region"] = region
    return description


def endpoint_of(options: StoreOptions) -> tuple[str | None, str | None]:
    """Return the URL of a store's endpoint and its region, as boto3 finds them.

    boto3 reads the options, the environment and the profile. No request is sent. If boto3 cannot be
    used, the values in the options are returned. A value is None if it is unknown.
    """
    try:
        client = S3Bucket("s3://any", options).connect()
    except DataprepError:
        return options.endpoint_url, options.region
    client.close()
    return client.meta.endpoint_url, client.meta.region_name
