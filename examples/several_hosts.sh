#!/bin/sh
# Train on several ranks, kill the training, and resume it with another number of ranks.
#
# The script makes shards, copies them as `dataprep stage` does on a host, trains with two ranks,
# kills both, and trains the rest of the epoch with three ranks. It takes two minutes and needs no
# network. Install the package before: pip install 'dataprep-iobench[torch]'
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
# Wait for the first checkpoint. `kill -0` ends the script if the training has ended before.
until [ -e "$work/checkpoint.pt" ]; do kill -0 $pid; sleep 0.1; done
# Kill torchrun, and then the ranks that it has started.
kill -9 $pid
pkill -9 -f "$work/checkpoint.pt" || true
wait $pid 2>/dev/null || true

echo "three ranks:"
torchrun --standalone --nproc-per-node 3 $train --checkpoint "$work/checkpoint.pt"
