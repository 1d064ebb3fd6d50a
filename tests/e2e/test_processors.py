"""The same bytes on every processor, as far as one machine can show it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

from dataprep.image import ImagePolicy, convert

pytestmark = pytest.mark.slow

_POLICIES = (
    ImagePolicy(size=100),
    ImagePolicy(mode="exact", size=77),
    ImagePolicy(size=90, filter="lanczos", progressive=True),
    ImagePolicy(size=90, filter="area", optimize=True, subsampling="444"),
    ImagePolicy(size=90, filter="bilinear", greyscale="rgb", icc="keep"),
)
_CONVERT_ALL = """
import hashlib, pathlib, sys
from dataprep.image import ImagePolicy, convert
digest = hashlib.sha256()
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.JPEG")):
    for text in sys.argv[2:]:
        policy = ImagePolicy.model_validate_json(text)
        digest.update(convert(path.read_bytes(), policy).data)
print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"OPENCV_CPU_DISABLE": "AVX2,AVX,FMA3"}, id="OpenCV without AVX"),
        pytest.param({"OPENCV_IPP": "disabled"}, id="OpenCV without IPP"),
        pytest.param({"JSIMD_FORCENONE": "1"}, id="libjpeg-turbo without SIMD"),
    ],
)
def test_vector_instructions_change_no_byte(tree: Path, environment: dict[str, str]) -> None:
    """Codecs that may not use a processor's instructions give the bytes of those that may."""
    if "AVX" in environment.get("OPENCV_CPU_DISABLE", ""):
        assert "AVX2" in cv2.getBuildInformation()
    digest = hashlib.sha256()
    for path in sorted(tree.rglob("*.JPEG")):
        for policy in _POLICIES:
            digest.update(convert(path.read_bytes(), policy).data)
    elsewhere = subprocess.run(
        [sys.executable, "-c", _CONVERT_ALL, str(tree), *(p.model_dump_json() for p in _POLICIES)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.strip() == digest.hexdigest()
