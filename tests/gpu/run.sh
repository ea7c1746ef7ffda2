#!/usr/bin/env bash
# One command on a machine with a GPU: what the virtual machine and the model say, held against it.
#
#   ./run.sh [--device cuda:0] [--out FOLDER] [--parts rank,calibrate,times,agree,tune]
#            [--seconds 535] [--small]
#
# Runs in the folder that pack.sh made, or in the source tree beside a build (EVOKE_BIN names the
# folder with evoke). Parts, each of which can be run alone:
#   rank       rank correlation of modelled and measured times over at least 300 variants; with the
#              description FOLDER/gpu.json where an earlier run left one
#   calibrate  a description of this GPU by micro-benchmarks: FOLDER/gpu.json
#   times      textbook and hand-tuned starts, and the vendor's own kernels by PyTorch where it is there
#   agree      goldens of the PTX table, and every kernel's starts against their oracles, on the
#              device and in the virtual machine
#   tune       evoke tune over the families; the winners qualified on the device
# Parts run in the order that --parts has. Each gets a share of what is left of --seconds, so one
# alone gets all; a step whose share is over is stopped, and what it had until then counts. A part that
# fails is said, and the next one runs. Results are JSON in FOLDER, together in FOLDER/results.json
# after every part; a table comes last. What other parts left in FOLDER stays. --small runs a small
# task of its own in place of those that ship: for the driver's stand-in, which runs every block.
# Exit codes: 0 all parts done, 1 a part failed or was stopped, 2 wrong usage, 3 no such device.
# shellcheck disable=SC2317 # parts are called by their names
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command="$0 $*"

device=cuda:0 out=$PWD/gpu-results parts=rank,calibrate,times,agree,tune seconds=535 small=0
# Seconds that a part wants: its share beside the parts that are still to come.
declare -rA WANTS=([rank]=150 [calibrate]=60 [times]=60 [agree]=150 [tune]=180)

fail_usage() {
  echo "run.sh: $*; see the head of $0" >&2
  exit 2
}

while (($# > 0)); do
  case $1 in
    --device | --out | --parts | --seconds)
      [[ $# -ge 2 ]] || fail_usage "$1 wants a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    --small)
      small=1
      shift
      ;;
    *) fail_usage "no option $1" ;;
  esac
done
[[ $seconds =~ ^[1-9][0-9]{0,5}$ ]] || fail_usage "--seconds $seconds: a whole number from 1 on"
read -ra parts <<<"${parts//,/ }"
for part in "${parts[@]}"; do
  [[ -n ${WANTS[$part]:-} ]] || fail_usage "no part '$part'; there are ${!WANTS[*]}"
done

# The pack, or the source tree.
if [[ -x $here/bin/evoke ]]; then
  home=$here bin=$here/bin goldens=$here/bin/goldens tools=$here
  export PATH=$bin:$PATH # clang-19 of the pack, before any other
else
  home=$(cd "$here/../.." && pwd) bin=${EVOKE_BIN:-$here/../../build} tools=$here
  goldens=$bin/tests/goldens
fi
export EVOKE_HOME=$home PYTHONDONTWRITEBYTECODE=1
evoke=$bin/evoke
python3 -c '' || {
  echo "run.sh: needs python3" >&2
  exit 3
}
mkdir -p "$out" || exit 3
out=$(cd "$out" && pwd)

# ---- time

# All in milliseconds.
now() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# in_seconds MILLISECONDS: with a point.
in_seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

until=$(($(now) + seconds * 1000))
part_until=0
most=0 # of the next step

# allot PERCENT: the next step may have that share of what is left of its part.
allot() {
  most=$(((part_until - $(now)) * $1 / 100))
}

# ---- steps

child='' is_stopped=0
on_stop() {
  is_stopped=1
  [[ -z $child ]] || kill -TERM "$child" 2>/dev/null
}
trap on_stop TERM INT

note() {
  failed=1
  why="${why:+$why; }$1"
}

# step NAME FILE COMMAND...: one command of a part, its stdout in FILE. It is told to stop near the
# end of its share, and killed at the end. A status other than 0 fails the part.
step() {
  local name=$1 file=$2 status=0 soft
  shift 2
  if ((most < 100 || is_stopped)); then
    note "$name: no time left"
    return
  fi
  soft=$((most > 25000 ? most - 5000 : most * 8 / 10))
  echo "\$ $*" >>"$out/$part.log"
  timeout -k "$(in_seconds $((most - soft)))" "$(in_seconds "$soft")" "$@" >"$out/$file" 2>>"$out/$part.log" &
  child=$!
  { wait "$child" || status=$?; } 2>/dev/null # bash would say that it was killed
  while kill -0 "$child" 2>/dev/null; do      # a signal to this script ended the wait
    status=0
    { wait "$child" || status=$?; } 2>/dev/null
  done
  child=''
  case $status in
    0) ;;
    124 | 137) note "$name: stopped after $(in_seconds "$soft") s" ;;
    *) if ((is_stopped)); then note "$name: stopped"; else note "$name: exit code $status"; fi ;;
  esac
}

# ---- what is there

{
  echo "evoke: $("$evoke" --version 2>&1)"
  echo "system: $(uname -sr)"
  ! command -v nvidia-smi >/dev/null || echo "nvidia-smi: $(nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,vbios_version,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current 2>&1 | tr '\n' ';')"
  ! command -v ptxas >/dev/null || echo "ptxas: $(ptxas --version | tail -n 1)"
} >"$out/machine.txt"
if ! "$evoke" devices --json >"$out/devices.json" 2>"$out/devices.log" ||
  ! properties=$(python3 "$tools/report.py" device "$out/devices.json" "$device" 2>>"$out/devices.log"); then
  cat "$out/devices.log" >&2
  echo "run.sh: there is no device $device" >&2
  exit 3
fi
read -r modelled twin <<<"$properties"
tasks=() rank_only=() variants=320
if ((small)); then
  tasks=("$home/tests/gpu/small/task.json" "$home/tests/gpu/small/steps.json")
  rank_only=(--only "${tasks[0]}")
  variants=12
else
  mapfile -t tasks < <("$evoke" list --json | python3 "$tools/report.py" kernels)
fi

# ---- the parts

# What a command has at the end of its time: its object in FILE.json, each row of it in FILE.rows.
part_rank() {
  local against=$twin
  [[ ! -s $out/gpu.json ]] || against=vm:$out/gpu.json
  allot 100
  step rank rank.json "$evoke" bench rank --device "$device" --against "$against" \
    --variants "$variants" --seconds "$(in_seconds $((most * 3 / 4)))" "${rank_only[@]}" --rows "$out/rank.rows" --json
}

part_calibrate() {
  local only=()
  ((small == 0)) || only=(--only lat_alu)
  allot 100
  step calibrate calibrate.json "$evoke" calibrate --device "$device" --out "$out/gpu.json" \
    "${only[@]}" --rows "$out/calibrate.rows" --json
}

check_on() {
  step "kernels on $2" "$1.json" "$evoke" check "${tasks[@]}" --device "$2" --rows "$out/$1.rows" --json
}

part_times() {
  if ! ((modelled)); then
    allot 40
    step vendor vendor.json python3 "$tools/vendor.py" --evoke "$evoke" --rows "$out/vendor.rows"
  fi
  allot 100
  [[ -s $out/check-device.json ]] || check_on check-device "$device"
}

part_agree() {
  allot 40
  step goldens goldens.json "$goldens" "$device" --seconds "$(in_seconds $((most * 3 / 4)))" --rows "$out/goldens.rows"
  allot 60
  check_on check-device "$device"
  allot 100
  # A virtual machine is not disturbed by others: a process a task.
  step "kernels on $twin" check-vm.json python3 "$tools/check.py" "$evoke" "$twin" "$out/check-vm.rows" "${tasks[@]}"
}

part_tune() {
  local budget=(--evaluations 40)
  allot 85
  ((small)) || budget=(--seconds "$(in_seconds $((most * 8 / 10 / ${#tasks[@]})))")
  step tune tune.json "$evoke" tune "${tasks[@]}" --device "$device" "${budget[@]}" \
    --records "$out/records.sqlite" --out "$out/bundle" --json
  allot 100
  [[ ! -d $out/bundle ]] ||
    step "winners again" winners.json "$evoke" qualify "$out/bundle" --device "$device" \
      --out "$out/bundle-qualified" --seconds "$(in_seconds $((most * 7 / 10)))" --json
}

# What a part made before; other parts' results stay.
declare -A makes=([agree]="goldens check-device check-vm" [calibrate]="calibrate gpu" [rank]=rank
  [times]=vendor [tune]="tune winners")
together() {
  python3 "$tools/report.py" all "$out" "$device" "$done" "$(date -u +%FT%TZ)" "$command" "$home"
}

any_failed=0 wanted=0 done=''
for part in "${parts[@]}"; do
  wanted=$((wanted + WANTS[$part]))
done
for part in "${parts[@]}"; do
  ((is_stopped == 0)) || break
  failed=0 why='' part_begin=$(now)
  part_until=$((part_begin + (until - part_begin) * WANTS[$part] / wanted))
  wanted=$((wanted - WANTS[$part]))
  echo "run.sh: $part, at most $(((part_until - part_begin) / 1000)) s" >&2
  for file in ${makes[$part]}; do
    rm -f "$out/$file.json" "$out/$file.rows"
  done
  rm -f "$out/$part.log" "$out/$part.status"
  [[ $part != tune ]] || rm -rf "$out"/{bundle,bundle-qualified,records.sqlite,records.sqlite-wal,records.sqlite-shm}
  "part_$part"
  printf '%d %d %s %s\n' "$failed" $((($(now) - part_begin) / 1000)) "$(date -u +%FT%TZ)" "$why" >"$out/$part.status"
  if ((failed)); then
    any_failed=1
    echo "run.sh: $part: $why (see $out/$part.log)" >&2
  fi
  done=${done:+$done,}$part
  together >"$out/table.txt" || any_failed=1
done
((is_stopped == 0)) || any_failed=1
cat "$out/table.txt"
exit "$any_failed"
