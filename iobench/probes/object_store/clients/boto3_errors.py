"""botocore's errors as failed requests, in one place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from iobench.probes.object_store.clients.protocol import RequestFailed


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn what botocore raises into ``RequestFailed``."""
    from botocore import exceptions as boto

    try:
        yield
    except boto.ClientError as error:
        raise _from_answer(error) from None
    except (boto.ConnectTimeoutError, boto.ReadTimeoutError) as error:
        raise RequestFailed("timeout", str(error)) from None
    except (boto.IncompleteReadError, boto.ResponseStreamingError) as error:
        raise RequestFailed("truncated", f"the body broke off: {error}") from None
    except (boto.BotoCoreError, OSError) as error:
        raise RequestFailed("connection", str(error)) from None


def _from_answer(error: object) -> RequestFailed:
    response = getattr(error, "response", None) or {}
    code = str(response.get("Error", {}).get("Code", ""))
    said = response.get("Error", {}).get("Message") or "no message"
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return RequestFailed(str(status or code), f"{status} {code}: {said}")
