#!/usr/bin/env bash
# What CI systems read: the JUnit file against a schema, by xmllint, and the snippets of docs/ci.md, by a
# YAML parser; the options in them are options. Exit code 77: xmllint or python3-yaml is not here, which
# is a failure where EVOKE_TEST_ALL=1 (./bootstrap test).
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

python=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import yaml' 2>/dev/null || continue
  python=$candidate
  break
done
if [[ -z $python ]] || ! command -v xmllint >/dev/null; then
  echo "skipped: there is no python3-yaml or no xmllint (libxml2-utils)"
  [[ ${EVOKE_TEST_ALL:-} == 1 ]] && exit 1
  exit 77
fi

# valid EXIT-CODE WORDS [argument ...]: a check whose report has the words, and fits the schema
valid() {
  local code=$1 words=$2 got=0
  shift 2
  "$build/evoke" check "$@" --junit "$work/check.xml" >"$work/log" 2>&1 || got=$?
  [[ $got == "$code" ]] || fail "exit code $got: $(cat "$work/log")"
  xmllint --noout --schema tests/junit.xsd "$work/check.xml" 2>"$work/log" || fail "$(cat "$work/log")"
  grep -q "$words" "$work/check.xml" || fail "no '$words' in $(cat "$work/check.xml")"
}

# the schema can refuse
printf '<testsuites tests="1" failures="0" errors="0"><testsuite name="a"/></testsuites>' >"$work/bad.xml"
! xmllint --noout --schema tests/junit.xsd "$work/bad.xml" 2>/dev/null || fail "the schema takes a suite without counts"

bundle=$work/bundle
"$build/evoke" tune examples/rmsnorm/task.json --evaluations 40 --seed 1 --records "$work/records" --out "$bundle" \
  >"$work/log" 2>&1 || fail "$(cat "$work/log")"
valid 0 'failures="0" errors="0"' "$bundle"

# findings whose words need escapes
cp -r "$bundle" "$work/lies"
"$python" - "$work/lies/manifest.json" <<'TEXT'
import json, sys
manifest = json.load(open(sys.argv[1]))
manifest["kernels"][0]["doc"] = "<a & \"b\"> ' \u00e9\n"
manifest["kernels"][0]["variants"][0]["disabled"] = "slow & \"tired\""
json.dump(manifest, open(sys.argv[1], "w"))
TEXT
valid 1 'type="drift"' "$work/lies"
valid 1 '<skipped message="slow &amp; &quot;tired&quot;"/>' "$work/lies"
"$python" - "$work/lies/manifest.json" <<'TEXT'
import json, sys
manifest = json.load(open(sys.argv[1]))
manifest["kernels"][0]["baselines"] = []
del manifest["kernels"][0]["variants"][0]["disabled"]
json.dump(manifest, open(sys.argv[1], "w"))
TEXT
valid 1 '<error message=' "$work/lies"

# the snippets are YAML with what the systems need, and name options that there are
"$python" - <<'TEXT' >"$work/options"
import re, yaml
snippets = re.findall(r"```yaml\n(.*?)```", open("docs/ci.md", encoding="utf-8").read(), re.DOTALL)
assert len(snippets) == 2, len(snippets)
github, gitlab = map(yaml.safe_load, snippets)
steps = github["jobs"]["check"]["steps"]
assert all(("run" in step) != ("uses" in step) for step in steps), steps
assert github["jobs"]["check"]["runs-on"] and (True in github or "on" in github) # YAML 1.1 reads "on" as true
assert gitlab["kernels"]["artifacts"]["reports"]["junit"] == "check.xml"
commands = [step["run"] for step in steps if "run" in step] + gitlab["kernels"]["script"]
assert all(isinstance(command, str) for command in commands), commands
checks = [command for command in commands if "evoke check" in command]
assert len(checks) == 2, checks
for option in sorted(set(re.findall(r"--[a-z-]+", " ".join(checks)))):
    print(option)
TEXT
"$build/evoke" check --help >"$work/help"
while read -r option; do
  grep -q -- "$option" "$work/help" || fail "docs/ci.md has $option, and evoke check does not"
done <"$work/options"
[[ -s $work/options ]] || fail "no option was found in docs/ci.md"
