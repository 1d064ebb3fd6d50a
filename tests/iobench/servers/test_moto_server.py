"""moto's server runs in a process of its own."""

from __future__ import annotations

import pytest

from iobench.servers import moto_server
from iobench.servers.moto_server import MotoServer


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        (True, "moto's S3 server ended with exit code 3"),
        (False, r"moto is not installed: pip install 'dataprep-iobench\[demo\]'"),
    ],
)
def test_a_server_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, installed: bool, reason: str
) -> None:
    """The error says why, or what installs moto."""
    monkeypatch.setattr(moto_server, "_SERVER_CODE", "raise SystemExit(3)")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: installed or None)
    with pytest.raises(RuntimeError, match=reason), MotoServer():
        pass
