#!/usr/bin/env bash
# Workers under a real Slurm on this one machine: munged, slurmctld and slurmd are started here, with
# files and ports of their own. A search by steps of a batch job gives what local workers give; so does
# one of whose steps one is cancelled in mid-run, and one whose job is cancelled and that is resumed.
set -euo pipefail
build=$1
readonly SKIPPED=77
readonly EVALUATIONS=80 DEADLINE=100 # seconds that anything here may take

missing() {
  local tool
  for tool in munged slurmctld slurmd sbatch srun squeue scancel sinfo; do
    command -v "$tool" >/dev/null || printf '%s ' "$tool"
  done
}
PATH=$PATH:/usr/sbin
without=$(missing)
if [[ -n $without ]]; then
  printf 'test_slurm: skipped: there is no %s(Debian: munge slurmctld slurmd slurm-client)\n' "$without"
  exit "$SKIPPED"
fi

folder=$(mktemp -d)
stop_cluster() {
  local daemon
  [[ -z ${SLURM_CONF:-} ]] || timeout 20 scancel --user="$(id -un)" 2>/dev/null || true
  for daemon in slurmd slurmctld munged; do
    [[ ! -s $folder/$daemon.pid ]] || kill "$(cat "$folder/$daemon.pid")" 2>/dev/null || true
  done
  for _ in 1 2 3 4 5 6 7 8 9 10; do # they write their state as they go
    ! rm -rf "$folder" 2>/dev/null || return 0
    sleep 0.5
  done
}
trap stop_cluster EXIT

fail() {
  tail -n 5 "$folder"/*.log "$folder"/*.out >&2 2>/dev/null || true
  printf 'test_slurm: %s\n' "$*" >&2
  exit 1
}

# Slurm itself does not come up: nothing was said about workers.
skip() {
  tail -n 5 "$folder"/*.log >&2 2>/dev/null || true
  printf 'test_slurm: skipped: %s\n' "$*"
  exit "$SKIPPED"
}

# within SECONDS COMMAND...: does it succeed in that time?
within() {
  local left=$(($1 * 5))
  shift
  until "$@"; do
    [[ $((left -= 1)) -gt 0 ]] || return 1
    sleep 0.2
  done
}
wait_for() {
  local what=$1
  shift
  within "$DEADLINE" "$@" || fail "waited $DEADLINE s for $what"
}

# ---- the cluster: one node, more processors than the machine has, no cgroups, no root needed

start_cluster() {
  local host port
  host=$(hostname -s)
  port=$((20000 + $$ % 20000))
  mkdir "$folder/state" "$folder/spool"
  chmod 700 "$folder"
  head -c 1024 /dev/urandom >"$folder/key"
  chmod 400 "$folder/key"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=evoke
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=$host Default=YES State=UP
CONF
  export SLURM_CONF=$folder/slurm.conf
  munged --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" --force 2>/dev/null ||
    skip "munged does not start"
  slurmctld && slurmd || skip "slurmctld or slurmd does not start"
  within 30 node_is_idle || skip "the node is not ready"
  timeout 30 srun --ntasks=1 true || skip "no step can run"
}
node_is_idle() { sinfo -h -o %T 2>/dev/null | grep -q '^idle'; }

# ---- searches

tune=("$build/evoke" tune "$PWD/examples/rmsnorm/task.json" --evaluations "$EVALUATIONS" --seed 3 --json)
step='srun --exact --ntasks=1 --cpus-per-task=1 '$build'/evoke worker --stdio'

# What the search found, without what may differ: how long it took, how many workers died.
found() {
  sed -e 's/"seconds":[^,}]*//' -e 's/"failed_workers":[^,}]*//' "$1"
}
same() {
  [[ -s $1 ]] || fail "$2: the search printed nothing"
  [[ "$(found "$1")" == "$(found "$folder/local.out")" ]] || fail "$2: found something else: $(cat "$1")"
}

# submit NAME ARGUMENTS...: a batch job with a coordinator and two workers; sets $job.
submit() {
  local name=$1
  shift
  {
    printf '#!/bin/bash\n#SBATCH --ntasks=3 --cpus-per-task=1 --output=%s\n' "$folder/$name.log"
    printf '%q ' "${tune[@]}" "$@" --worker-command "2:$step"
    printf '>%q\n' "$folder/$name.out"
  } >"$folder/$name.sh"
  job=$(timeout "$DEADLINE" sbatch --parsable "$folder/$name.sh")
}
is_over() { [[ -z $(squeue -h -j "$job" 2>/dev/null) ]]; }
# Two steps run, and each has worked for a while.
steps_run() { [[ $(squeue -h -s -j "$job" -o %i 2>/dev/null | grep -c '\.[0-9]') -ge 2 ]]; }
records_grow() { [[ -s $folder/$1.db-wal && $(stat -c %s "$folder/$1.db-wal") -gt 60000 ]]; }

start_cluster
"${tune[@]}" --workers 2 >"$folder/local.out"

submit whole
wait_for "the search under Slurm" is_over
same "$folder/whole.out" "steps of a job"

submit cut --records "$folder/cut.db"
wait_for "two steps" steps_run
wait_for "some records" records_grow cut
scancel "$(squeue -h -s -j "$job" -o %i | grep '\.[0-9]' | head -n 1)"
wait_for "the search without one step" is_over
same "$folder/cut.out" "one step cancelled"
grep -q '"failed_workers":[1-9]' "$folder/cut.out" || fail "the cancelled step was no worker at work"

submit gone --records "$folder/gone.db"
wait_for "two steps" steps_run
wait_for "some records" records_grow gone
scancel "$job"
wait_for "the end of the job" is_over
[[ ! -s $folder/gone.out ]] || grep -q '"stopped":true' "$folder/gone.out" ||
  fail "the job ended before it was cancelled"
submit again --records "$folder/gone.db" --resume
wait_for "the resumed search" is_over
same "$folder/again.out" "the job cancelled and resumed"
