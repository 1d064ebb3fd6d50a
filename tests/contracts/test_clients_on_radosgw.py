"""Clients of an object store pass their contract on a server that checks requests strictly."""

from __future__ import annotations

import pytest

from tests.contracts.test_object_client_contract import (
    connect,
    proxy,
    store,
    test_a_failed_multipart_upload_is_aborted,
    test_a_range_is_read_and_no_more,
    test_a_range_that_ends_early_is_a_failure,
    test_a_whole_object_is_read,
    test_multipart_uploads_have_the_parts_they_are_told,
    test_what_is_not_there_is_a_failure,
    test_what_is_put_is_stored,
)
from tests.servers.radosgw import RadosGateway

__all__ = [
    "connect",
    "proxy",
    "store",
    "test_a_failed_multipart_upload_is_aborted",
    "test_a_range_is_read_and_no_more",
    "test_a_range_that_ends_early_is_a_failure",
    "test_a_whole_object_is_read",
    "test_multipart_uploads_have_the_parts_they_are_told",
    "test_what_is_not_there_is_a_failure",
    "test_what_is_put_is_stored",
]


@pytest.fixture(scope="session")
def s3_server(radosgw: RadosGateway) -> RadosGateway:
    """The server on which the tests of this module create their bucket."""
    return radosgw
