#!/usr/bin/env bash
# The installed tree works by itself, without EVOKE_HOME; completions and man pages are what their
# readers take. What zsh, fish and man say is only looked at where they are installed.
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

cmake --install "$build" --component evoke --prefix "$scratch" >/dev/null
unset EVOKE_HOME
evoke=$scratch/bin/evoke
# One task less than the source folder has: the installed tree is the one that is read.
rm -r "$scratch/share/evoke/kernels/fft"
"$evoke" list >"$scratch/list.txt"
grep -q '^ar_adam ' "$scratch/list.txt" || fail "the installed tree lists no tasks"
! grep -q '^fft_conv2d ' "$scratch/list.txt" || fail "the tasks listed are not those of the installed tree"
"$evoke" devices | grep -q '^vm:h200 ' || fail "the installed tree has no descriptions of GPUs"
"$evoke" doctor >"$scratch/doctor.txt" || fail "doctor: $(cat "$scratch/doctor.txt")"
grep -q "$scratch/share/evoke" "$scratch/doctor.txt" || fail "doctor does not name the installed tree"
if PATH=/nowhere "$evoke" doctor >"$scratch/doctor.txt"; then fail "doctor is content without a compiler"; fi
grep -q 'apt-get install clang-19' "$scratch/doctor.txt" || fail "doctor does not tell where clang-19 comes from"

# bash: reply WORD... prints what the last word is completed to.
# shellcheck disable=SC1091
. "$scratch/share/bash-completion/completions/evoke"
reply() {
  COMP_WORDS=(evoke "$@")
  COMP_CWORD=$#
  _evoke
  echo "${COMPREPLY[*]}"
}
[[ $(reply re) == report ]] || fail "re is completed to: $(reply re)"
[[ $(reply tune --effort "") == "quick normal thorough" ]] || fail "--effort: $(reply tune --effort "")"
[[ $(reply tune --least) == --least-gain ]] || fail "--least: $(reply tune --least)"
[[ $(reply help qu) == qualify ]] || fail "help qu is completed to: $(reply help qu)"
[[ -z $(reply list --least) ]] || fail "list takes no --least-gain"
[[ $(reply check "$scratch/li") == "$scratch/list.txt" ]] || fail "files: $(reply check "$scratch/li")"

if command -v zsh >/dev/null; then
  zsh -n "$scratch/share/zsh/vendor-completions/_evoke" || fail "zsh does not read its completion"
fi
if command -v fish >/dev/null; then
  fish -n "$scratch/share/fish/vendor_completions.d/evoke.fish" || fail "fish does not read its completion"
  said=$(fish -c "source '$scratch/share/fish/vendor_completions.d/evoke.fish'; complete -C 'evoke help qu'") || true
  [[ $said == qualify* ]] || fail "fish completes help qu to: $said"
fi

for page in "$scratch"/share/man/man1/*.1; do
  [[ $(head -c 4 "$page") == ".TH " ]] || fail "$page is no man page"
  if command -v groff >/dev/null; then
    said=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null) || true
    [[ -z $said ]] || fail "$page: $said"
  fi
done
for command in $("$evoke" --help | sed -n '/^Commands:/,/^$/{s/^  \([a-z]*\) .*/\1/p}'); do
  [[ -s $scratch/share/man/man1/evoke-$command.1 ]] || fail "evoke $command has no man page"
done
