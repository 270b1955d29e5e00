#!/bin/sh
# A sweep in as many parts as the array has, each on a node of its own:
#   sbatch --export=ALL,SHARED=/shared/folder slurm.sh
# SHARED is a folder that all nodes see, with jobs.jsonl in it. A part that is preempted or killed is queued again and goes on.
#SBATCH --job-name=argosy-sweep
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --mem=32G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
: "${SHARED:?a folder that all nodes see, with jobs.jsonl in it}"

# All parts share captures: what one has captured, the others find.
export ARGOSY_CACHE="${ARGOSY_CACHE:-$SHARED/cache}"
export HF_HOME="${HF_HOME:-$SHARED/huggingface}"

# exec, so that what Slurm sends reaches the sweep.
exec argosy sweep "$SHARED/jobs.jsonl" --output "$SHARED/out" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
