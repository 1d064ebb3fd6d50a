#!/bin/sh
# Shards, a copy on a local disk, training with two ranks, a kill, and the rest of the epoch with
# three ranks. Needs `pip install 'dataprep-iobench[torch]'`, two minutes, and no network:
#
#     sh examples/several_hosts.sh [FOLDER]
set -eu
here=$(dirname "$0")
work=${1:-$(mktemp -d)}
train="$here/train_ddp.py $work/local --global-batch 48 --size 64 --every 1"
export OMP_NUM_THREADS=1

dataprep sample "$work/photos" --images 1200
dataprep shard --source "$work/photos" --output "$work/out" --size 96 --shard-size 1.2MB
dataprep stage "$work/out" "$work/local"

echo "two ranks, killed within the epoch:"
torchrun --standalone --nproc-per-node 2 $train --checkpoint "$work/checkpoint.pt" &
pid=$!
until [ -e "$work/checkpoint.pt" ]; do kill -0 $pid; sleep 0.1; done
kill -9 $pid
pkill -9 -f "$work/checkpoint.pt" || true
wait $pid 2>/dev/null || true

echo "three ranks:"
torchrun --standalone --nproc-per-node 3 $train --checkpoint "$work/checkpoint.pt"
