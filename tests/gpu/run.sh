#!/usr/bin/env bash
# One command on a machine with a GPU: what the virtual machine and the model say, held against it.
#
#   ./run.sh [--device cuda:0] [--out FOLDER] [--parts agree,calibrate,rank,times,tune] [--small]
#
# Runs in the folder that pack.sh made, or in the source tree beside a build (EVOKE_BIN names the
# folder with evoke). Parts, each of which can be run alone:
#   agree      goldens of the PTX table, and every kernel's starts against their oracles, on the
#              device and in the virtual machine
#   calibrate  a description of this GPU by micro-benchmarks: FOLDER/gpu.json
#   rank       rank correlation of modelled and measured times over at least 300 variants, with that
#              description where there is one
#   times      textbook and hand-tuned starts, and the vendor's own kernels by PyTorch where it is there
#   tune       three minutes of evoke tune over the families; the winners qualified on the device
# A part that fails is said, and the next one runs. At most 9 minutes in all. Results are JSON in
# FOLDER, together in FOLDER/results.json; a table comes last. What other parts left in FOLDER stays. --small runs a small task of its own
# in place of those that ship: for the driver's stand-in, which runs every block.
# Exit codes: 0 all parts done, 1 a part failed, 2 wrong usage, 3 no such device.
# shellcheck disable=SC2317 # parts are called by their names
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

device=cuda:0 out=$PWD/gpu-results parts=agree,calibrate,rank,times,tune small=0
readonly ALL_PARTS=" agree calibrate rank times tune "

fail_usage() {
  echo "run.sh: $*; see the head of $0" >&2
  exit 2
}

while (($# > 0)); do
  case $1 in
    --device | --out | --parts)
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
for part in ${parts//,/ }; do
  [[ $ALL_PARTS == *" $part "* ]] || fail_usage "no part '$part'; there are$ALL_PARTS"
done

# The pack, or the source tree.
if [[ -x $here/bin/evoke ]]; then
  home=$here bin=$here/bin goldens=$here/bin/goldens tools=$here
  export PATH=$bin:$PATH # clang-19, unless a path before it has one
else
  home=$(cd "$here/../.." && pwd) bin=${EVOKE_BIN:-$here/../../build} tools=$here
  goldens=$bin/tests/goldens
fi
export EVOKE_HOME=$home
evoke=$bin/evoke
mkdir -p "$out" || exit 3
out=$(cd "$out" && pwd)

begin=$SECONDS
readonly MOST_SECONDS=535

# step NAME SECONDS FILE COMMAND...: one command of a part, its stdout in FILE, never longer than
# SECONDS and than what is left of the whole. A status other than 0 fails the part.
step() {
  local name=$1 most=$2 file=$3 left status=0
  shift 3
  left=$((MOST_SECONDS - (SECONDS - begin)))
  ((most <= left)) || most=$left
  if ((most <= 0)); then
    echo "$name: no time left" >>"$out/$part.log"
    failed=1
    return
  fi
  echo "\$ $*" >>"$out/$part.log"
  timeout -k 5 "$most" "$@" >"$out/$file" 2>>"$out/$part.log" || status=$?
  if ((status != 0)); then
    echo "$name: exit code $status" >>"$out/$part.log"
    failed=1
    why="${why:+$why; }$name: "
    if ((status == 124)); then why+="took longer than $most s"; else why+="exit code $status"; fi
  fi
}

# ---- what is there

if ! "$evoke" devices --json >"$out/devices.json" 2>"$out/devices.log" ||
  ! properties=$(python3 "$tools/report.py" device "$out/devices.json" "$device"); then
  cat "$out/devices.log" >&2
  echo "run.sh: there is no device $device" >&2
  exit 3
fi
read -r modelled twin <<<"$properties"
tasks=() rank_only=() variants=320 tune_seconds=0
if ((small)); then
  tasks=("$home/tests/gpu/small/task.json")
  rank_only=(--only "${tasks[0]}")
  variants=12
else
  mapfile -t tasks < <("$evoke" list --json | python3 "$tools/report.py" kernels)
fi
tune_seconds=$((180 / ${#tasks[@]}))
tune_budget=(--seconds "$tune_seconds")
((small == 0)) || tune_budget=(--evaluations 40)

# ---- the parts

part_agree() {
  step goldens 90 goldens.json "$goldens" "$device" --seconds 75
  step "kernels on $device" 60 check-device.json "$evoke" check "${tasks[@]}" --device "$device" --json
  step "kernels on $twin" 60 check-vm.json "$evoke" check "${tasks[@]}" --device "$twin" --json
}

part_calibrate() {
  local only=()
  ((small == 0)) || only=(--only lat_alu)
  step calibrate 80 calibrate.json "$evoke" calibrate --device "$device" --out "$out/gpu.json" \
    "${only[@]}" --json
}

part_rank() {
  local against=$twin
  [[ ! -s $out/gpu.json ]] || against=vm:$out/gpu.json
  step rank 185 rank.json "$evoke" bench rank --device "$device" --against "$against" \
    --variants "$variants" --seconds 150 "${rank_only[@]}" --json
}

part_times() {
  [[ -s $out/check-device.json ]] ||
    step starts 60 check-device.json "$evoke" check "${tasks[@]}" --device "$device" --json
  ((modelled)) || step vendor 40 vendor.json python3 "$tools/vendor.py"
}

part_tune() {
  step tune 215 tune.json "$evoke" tune "${tasks[@]}" --device "$device" "${tune_budget[@]}" \
    --records "$out/records.sqlite" --out "$out/bundle" --json
  [[ ! -d $out/bundle ]] ||
    step "winners again" 30 winners.json "$evoke" qualify "$out/bundle" --device "$device" \
      --out "$out/bundle-qualified" --seconds 25 --json
}

# What a part made before; other parts' results stay.
declare -A makes=([agree]="goldens.json check-device.json check-vm.json"
  [calibrate]="calibrate.json gpu.json" [rank]=rank.json [times]=vendor.json
  [tune]="tune.json winners.json bundle bundle-qualified records.sqlite records.sqlite-wal records.sqlite-shm")
any_failed=0
for part in ${parts//,/ }; do
  failed=0 why='' part_begin=$SECONDS
  echo "run.sh: $part" >&2
  for file in ${makes[$part]} "$part.log" "$part.status"; do
    rm -rf "${out:?}/$file"
  done
  "part_$part"
  printf '%d %d %s\n' "$failed" "$((SECONDS - part_begin))" "$why" >"$out/$part.status"
  if ((failed)); then
    any_failed=1
    echo "run.sh: $part failed: $why (see $out/$part.log)" >&2
  fi
done

python3 "$tools/report.py" all "$out" "$device" "$parts" "$(date -u +%F)" "$0 $parts" "$home" || any_failed=1
exit "$any_failed"
