"""Leases of a directory: what goes with files."""

from __future__ import annotations

import errno
import fcntl
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dataprep.errors import StoreError
from dataprep.stores import local_leases
from dataprep.stores.local import LocalStore
from dataprep.stores.local_leases import FileLease, ProcessClaim, take
from dataprep.stores.protocol import Holder


def held(path: Path) -> FileLease:
    """One that is held."""
    found = take(path, "me")
    assert isinstance(found, FileLease)
    return found


def test_what_a_dead_holder_wrote_is_overwritten(tmp_path: Path) -> None:
    """A file alone holds nothing."""
    path = tmp_path / "leases" / "train"
    path.parent.mkdir()
    path.write_text("somebody who was killed, at some length")
    lease = held(path)
    found = take(path, "another")
    assert isinstance(found, Holder)
    assert found.said == "me"
    lease.release()
    assert list(tmp_path.glob("*")) == []


def test_a_file_that_was_removed_or_replaced_is_lost(tmp_path: Path) -> None:
    """Others would lock another; what is there now stays."""
    path = tmp_path / "leases" / "train"
    lease = held(path)
    path.unlink()
    assert "is gone" in lease.lost()
    other = held(path)
    assert lease.lost()
    lease.release()
    assert other.lost() == ""
    other.release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_files_cannot_be_locked_nobody_is_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As on some network file systems; nothing is left there."""

    def refuse(descriptor: int, how: int) -> None:
        raise OSError(code, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "leases" / "train"
    assert take(path, "me") is None
    assert not path.exists()
    path.touch()
    assert list(local_leases.holders(path.parent, "train")) == []


def test_leases_are_no_objects_and_are_not_tidied_away(tmp_path: Path) -> None:
    """They lie where half-written files lie."""
    store = LocalStore(str(tmp_path))
    store.prepare()
    lease = store.lease("train", "me")
    assert isinstance(lease, FileLease)
    assert list(store.list()) == []
    store.tidy()
    assert lease.lost() == ""
    lease.release()
    assert list(tmp_path.iterdir()) == []


def test_what_a_link_leads_to_is_not_emptied(tmp_path: Path) -> None:
    """Somebody who may write in the output could have any file of ours emptied."""
    precious = tmp_path / "precious"
    precious.write_text("all there is")
    folder = tmp_path / "leases"
    folder.mkdir()
    (folder / "train").symlink_to(precious)
    with pytest.raises(StoreError, match="leases/train"):
        take(folder / "train", "me")
    with pytest.raises(StoreError, match="leases/train"):
        list(local_leases.holders(folder, "train"))
    assert precious.read_text() == "all there is"


def test_there_is_none_where_nothing_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a folder that was removed, where ``mkdir`` itself finds no such file."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    with pytest.raises(StoreError, match="no such file"):
        take(Path("locks/train"), "")


def test_one_that_cannot_be_opened_keeps_no_other_from_being_swept(tmp_path: Path) -> None:
    """A folder, or a link, among them."""
    for name in ("a", "c"):
        (tmp_path / "leases" / name).mkdir(parents=True)
    (tmp_path / "leases/b").write_text("dead")
    local_leases.sweep(tmp_path / "leases")
    assert sorted(path.name for path in (tmp_path / "leases").iterdir()) == ["a", "c"]


def test_a_claim_lasts_as_long_as_the_process_that_has_the_lock(tmp_path: Path) -> None:
    """Its workers may live a moment longer, and the next run may have begun by then."""
    code = (
        "import pickle, sys; from pathlib import Path;"
        "from dataprep.stores.local_leases import take;"
        "print(pickle.dumps(take(Path(sys.argv[1]), 'me').claim()).hex(), flush=True);"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "train")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        claim = pickle.loads(bytes.fromhex(driver.stdout.readline().decode()))
        assert isinstance(claim, ProcessClaim)
        assert claim.lost() == ""
        driver.kill()
        driver.wait()
    assert claim.lost() == "the process that had it is gone"
    assert replace(claim, machine="another").lost() == ""


def test_a_claim_of_its_own_process_holds(tmp_path: Path) -> None:
    """Jobs on threads ask too."""
    lease = held(tmp_path / "train")
    assert lease.claim().lost() == ""
    lease.release()
