#!/usr/bin/env bash
# Measures a machine with a GPU and without network, within eight minutes: see README.md.
#
#     OUT=results bash run.sh
#
# Environment variables, with their defaults in parentheses:
#     OUT           folder for the results (gpu-kit-results)
#     WORK          folder for packages, shards and copies (a new one, which is removed at the end)
#     PYTHON        interpreter with PyTorch (the first of python3, python that imports torch)
#     DEVICE        gpu or cpu (gpu)
#     QUICK         1: a small network and few steps, to see whether everything works
#     COPIES        names for each photograph (200; 2 with QUICK=1)
#     LIMIT         seconds for all parts (480)
#     LIMIT_SHARD and so on: seconds for one part
#     PARTS         the parts to run, in this order
# Exit code 0: all parts are done. 1: at least one part failed, was stopped after its time, or was
# not run because no time was left. 2: nothing could run.
set -uo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-gpu-kit-results}
device=${DEVICE:-gpu}
quick=${QUICK:-0}
limit=${LIMIT:-480}
parts=${PARTS:-prepare device loaders shard training watch replay ladder}
began_s=$SECONDS
exit_code=0

give_up() {
  echo "gpu-kit: $1" >&2
  exit 2
}

case $device in gpu | cpu) ;; *) give_up "DEVICE=$device: give gpu or cpu" ;; esac
mkdir -p "$out" && out=$(cd "$out" && pwd) || give_up "cannot write in OUT=$out"
[ -z "$(ls -A "$out")" ] || give_up "OUT=$out is not empty: name another folder"
for name in $parts; do
  case $name in
    prepare | device | loaders | shard | training | watch | replay | ladder) ;;
    *) give_up "PARTS: there is no part $name" ;;
  esac
done
if [ -n "${WORK:-}" ]; then
  mkdir -p "$WORK" && work=$(cd "$WORK" && pwd) || give_up "cannot write in WORK=$WORK"
  [ -z "$(ls -A "$work")" ] || give_up "WORK=$work is not empty: name another folder"
else
  work=$(mktemp -d) || give_up "cannot make a folder for temporary files: set WORK"
  trap 'rm -rf "$work"' EXIT
fi
[ "${#work}" -le 60 ] || give_up "$work is too long for sockets below it: set WORK to a path of at \
most 60 characters"

# The interpreter of the container image, and the packages that it must have.
python=${PYTHON:-}
if [ -z "$python" ]; then
  for name in python3 python; do
    if "$name" -c 'import torch' 2>/dev/null; then python=$name && break; fi
  done
fi
[ -n "$python" ] || give_up "neither python3 nor python imports torch: set PYTHON"
case $python in /*) ;; */*) python=$PWD/$python ;; esac
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
  give_up "PYTHON=$python does not run"
requirements=$kit/requirements-$version.txt
kit_versions=$(cd "$kit" && echo requirements-*.txt | sed 's/requirements-//g; s/\.txt//g')
[ -e "$requirements" ] || give_up "the kit was built for Python $kit_versions, and $python is \
Python $version: build it again with make gpu-kit FOR_PYTHON=$version (3.11 or newer)"
missing=$("$python" - <<'CODE'
from importlib.util import find_spec
names = ("torch", "numpy", "pandas", "pyarrow", "cv2", "PIL", "scipy")
print(" ".join(name for name in names if find_spec(name) is None))
CODE
)
[ -z "$missing" ] || give_up "$python has no $missing, which the kit does not bring"

# The packages go into a folder of their own, so nothing in the image changes. Their dependencies
# are in the same list, or in the image. The settings of pip on this machine are not read, because
# they may name an index on the network.
PIP_CONFIG_FILE=/dev/null "$python" -m pip --isolated install --quiet \
  --disable-pip-version-check --no-index --no-deps --no-compile \
  --find-links "$kit/wheels" --target "$work/site" -r "$requirements" >"$out/install.log" 2>&1 ||
  give_up "the packages cannot be installed: $(tail -n 1 "$out/install.log"); see $out/install.log"
export PYTHONPATH=$work/site:$kit${PYTHONPATH:+:$PYTHONPATH}
export TMPDIR=$work
if [ "$device" = cpu ]; then
  export CUDA_VISIBLE_DEVICES=
  # Threads of PyTorch would compete with the loader's.
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
fi
cd "$kit" || exit 2
"$python" -m benchmarks.gpu.versions >"$out/versions.txt" 2>>"$out/install.log"
note=
if [ "$quick" = 1 ]; then note="; with QUICK=1 the figures say nothing about the machine"; fi
echo "install: done, $((SECONDS - began_s)) s: Python $version$note" | tee "$out/lines.txt"
# Workers hand their batches over in shared memory.
shared_mb=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${shared_mb:-0}" -lt 2000 ]; then
  echo "warning: /dev/shm has ${shared_mb:-0} MB; 16 workers need 2,000" | tee -a "$out/lines.txt"
fi

# part NAME LIMIT COMMAND...: run a part and print its line. It is stopped after its own limit, or
# when the time of all parts is up.
part() {
  local name=$1 part_limit_s=$2 limit_variable="LIMIT_${1^^}" left_s=$((limit - SECONDS + began_s))
  local started_s=$SECONDS
  shift 2
  part_limit_s=${!limit_variable:-$part_limit_s}
  if [ "$left_s" -lt 1 ]; then
    echo "$name: not run: the $limit s of all parts are over" | tee -a "$out/lines.txt"
    exit_code=1
    return
  fi
  if [ "$part_limit_s" -gt "$left_s" ]; then part_limit_s=$left_s; fi
  timeout --kill-after=10 "$part_limit_s" "$@" >"$out/$name.log" 2>&1
  local status=$? spent_s=$((SECONDS - started_s)) outcome=done
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    outcome="stopped after its $part_limit_s s"
  elif [ "$status" != 0 ]; then
    outcome="failed with exit code $status"
  fi
  if [ "$outcome" != done ]; then exit_code=1; fi
  "$python" -m benchmarks.gpu.line "$name" "$out" "$outcome" "$spent_s" 2>>"$out/$name.log" |
    tee -a "$out/lines.txt"
}

counts=1,2,4,8,16 workers=1,4,8,16 seconds=1.5 images=3000 epochs=1 batch=256 side=224
copies=${COPIES:-200}
quick_options=()
if [ "$quick" = 1 ]; then
  counts=1,2 workers=1,2 seconds=0.2 images=24 epochs=5 batch=2 side=64
  copies=${COPIES:-2}
  quick_options=(--quick)
fi
example() {
  "$python" -m torch.distributed.run --standalone --nproc-per-node 1 examples/train_ddp.py \
    "$work/shards" --global-batch "$batch" --size "$side" --epochs "$epochs" \
    --checkpoint "$work/$1.pt" --every 1000000 --watch "$out/$1" "${@:2}"
}
export -f example
export python work out batch side epochs

for name in $parts; do
  case $name in
    prepare)
      part prepare 60 "$python" -m benchmarks.gpu.prepare "$kit/photos" "$work" \
        --copies "$copies" --device "$device" "${quick_options[@]}"
      ;;
    shard)
      part shard 70 "$python" -m benchmarks.shard_scaling "$work/photos" --workers "$workers" \
        --images-per-worker "$images" --to "$out/shard.json"
      ;;
    loaders)
      part loaders 100 "$python" -m benchmarks.loader_scaling "$work/shards" --counts "$counts" \
        --seconds "$seconds" --to "$out/loaders.json"
      ;;
    device | training)
      part "$name" "$([ "$name" = device ] && echo 60 || echo 90)" \
        "$python" -m iobench run "$work/$name.yaml" --output "$out/$name"
      ;;
    ladder)
      part ladder 180 "$python" -m iobench ladder "$work/ladder.yaml" --output "$out/ladder"
      ;;
    watch)
      part watch 50 bash -c 'example watch'
      ;;
    replay)
      part replay 50 bash -c 'example replay --replay 8'
      ;;
  esac
done

# Files that are too large to be copied back are compressed. If one is still too large, it is
# deleted.
find "$out" -type f -size +15M ! -name '*.gz' -exec gzip {} +
find "$out" -type f -size +15M -print -delete | sed 's/^/gpu-kit: too large, deleted: /' >&2
echo "all: $((SECONDS - began_s)) s; results in $out" | tee -a "$out/lines.txt"
exit $exit_code
