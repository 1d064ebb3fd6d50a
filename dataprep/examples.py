"""The example configs that come with the package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from dataprep.errors import ConfigError

_PACKAGED = Path(__file__).parent / "_configs"
_CHECKOUT = Path(__file__).parent.parent / "configs"


def copy_configs(dest: Path) -> Iterator[Path]:
    """Copy them to ``dest/configs``, file by file; the copies made.

    Raises:
        ConfigError: a file is there already, or none may be written.
    """
    home = _home()
    # Schemas beside them, for editors.
    found = [*home.rglob("*.yaml"), *home.rglob("*.json")]
    pairs = [(path, dest / "configs" / path.relative_to(home)) for path in found]
    taken = [str(target) for _, target in pairs if target.exists()]
    if taken:
        raise ConfigError(f"{taken[0]} is there already: choose another place or remove it")
    for path, target in sorted(pairs):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        except OSError as error:
            raise ConfigError(f"cannot write {str(target)!r}: {error.strerror}") from None
        yield target


def example_config(name: str) -> Path:
    """One of them, as in ``prices.yaml``."""
    return _home() / name


def _home() -> Path:
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
