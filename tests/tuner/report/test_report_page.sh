#!/usr/bin/env bash
# The report of a real run, while the run lasts and afterwards, and of its bundle, in a real browser: no error, marks in
# every plot, tables that sort, no overflow on a narrow screen, reloading that ends. The parts that
# need a browser are skipped where no Chromium is installed.
set -euo pipefail
readonly SKIPPED=77
readonly EVOKE=$1/evoke
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "$1"
  exit 1
}

"$EVOKE" tune examples/rmsnorm/task.json --evaluations 40 --seed 3 --workers 2 --no-structure \
  --out "$scratch/bundle" --records "$scratch/run.sqlite" --report "$scratch/live.html" >/dev/null 2>"$scratch/tune.txt" &
tune=$!
while kill -0 "$tune" 2>/dev/null; do
  if [[ -e $scratch/live.html ]]; then
    cp "$scratch/live.html" "$scratch/seen.html"
    grep -q '</html>' "$scratch/seen.html" || fail "half a page was to be seen while the run went on"
    if grep -q 'id="live"' "$scratch/seen.html"; then cp "$scratch/seen.html" "$scratch/going.html"; fi
  fi
  sleep 0.1
done
wait "$tune" || fail "evoke tune failed: $(cat "$scratch/tune.txt")"
"$EVOKE" report --records "$scratch/run.sqlite" --out "$scratch/report.html"
"$EVOKE" report "$scratch/bundle" --out "$scratch/bundle.html"
grep -q 'location.reload' "$scratch/going.html" || fail "the page of the run does not reload itself"
grep -q 'location.reload' "$scratch/live.html" && fail "the page reloads itself after the run"
grep -q 'The run has ended: 40 evaluations' "$scratch/live.html" || fail "the page does not say that the run has ended"
grep -q '<code>' "$scratch/live.html" || fail "no edit has its source line"
grep -q '<pre class="diff"' "$scratch/live.html" || fail "no edit has its code"
grep -q 'class="point tuned"' "$scratch/live.html" || fail "there is no roofline"
(($(grep -c '<svg' "$scratch/live.html") == $(grep -c '<svg' "$scratch/report.html"))) ||
  fail "the last page of the run is not that of evoke report"
grep -q '<pre class="diff"' "$scratch/bundle.html" || fail "no edit of the bundle has its code"
grep -q 'class="point tuned"' "$scratch/bundle.html" || fail "the bundle's page has no roofline"
grep -q 'The search<' "$scratch/bundle.html" && fail "the bundle's page has a search"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "no Chromium is installed: the page was not looked at in a browser"
  exit "$SKIPPED"
}

# look WIDTH FILE [MORE]: the page's elements once its scripts have run.
look() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --window-size="$1,900" "${@:3}" \
    --user-data-dir="$scratch/profile" --dump-dom "file://$2" 2>/dev/null
}

# expect_page FILE PLOTS: the page with a script in front that keeps errors, and one behind that looks
# at the page, narrow and wide.
expect_page() {
  local width found
  {
    printf '%s\n' '<script>window.wrong=[];window.onerror=(m)=>window.wrong.push(m)</script>'
    cat "$1"
    cat <<'SCRIPT'
<script>
const say=(k,v)=>{const p=document.createElement('p');p.textContent='FOUND '+k+'='+v;document.body.append(p)};
const empty=[...document.querySelectorAll('svg')].filter(s=>!s.querySelector('path.best,path.dots,circle,rect'));
const table=[...document.querySelectorAll('table.sorts')].at(-1);
const column=()=>[...table.tBodies[0].rows].map(r=>+r.cells[1].dataset.v);
const button=table.tHead.rows[0].cells[1].querySelector('button');
const is=(f)=>column().every((v,i,a)=>i===0||f(a[i-1],v));
button.click();const down=is((a,b)=>a>=b);button.click();const up=is((a,b)=>a<=b);
say('plots',document.querySelectorAll('svg').length);say('empty',empty.length);
say('sorted',down&&up);say('errors',window.wrong.length+window.wrong.join(';'));
say('unlabelled',[...document.querySelectorAll('svg')].filter(s=>!s.querySelector('title')).length);
const labels=[...document.querySelectorAll('[role=region]')].map(r=>r.getAttribute('aria-label'));
say('table',labels.filter(l=>!l||l==='table').length);
say('overflow',document.documentElement.scrollWidth>window.innerWidth);
</script>
SCRIPT
  } >"$scratch/looked.html"

  for width in 500 1300; do
    look "$width" "$scratch/looked.html" >"$scratch/dom.txt"
    found=$(grep -o 'FOUND [a-z]*=[^<]*' "$scratch/dom.txt" | sed 's/FOUND //' | tr '\n' ' ')
    [[ $found == "plots=$2 empty=0 sorted=true errors=0 unlabelled=0 table=0 overflow=false " ]] || {
      echo "at $width pixels the page $1 has: $found"
      exit 1
    }
  done
}
# expect_paper FILE: printed on A4, no table is wider than the page, whose width is that of the screen here.
expect_paper() {
  {
    sed 's/@media print/@media screen/' "$1"
    cat <<'SCRIPT'
<script>
const p=document.createElement('p'),w=[...document.querySelectorAll('.wide')].map(d=>d.firstElementChild.offsetWidth-d.clientWidth);
p.textContent='FOUND cut='+w.filter(x=>x>0).length+' of='+(w.length>1);document.body.append(p);
</script>
SCRIPT
  } >"$scratch/paper.html"
  look 680 "$scratch/paper.html" >"$scratch/dom.txt"
  grep -q 'FOUND cut=0 of=true' "$scratch/dom.txt" || fail "on paper $1 has: $(grep -o 'FOUND [^<]*' "$scratch/dom.txt")"
}
expect_paper "$scratch/report.html"
expect_paper "$scratch/bundle.html"
expect_page "$scratch/report.html" 7
expect_page "$scratch/bundle.html" 3

# A page that nobody rewrites stands still after six reloads of the same stamp.
look 900 "$scratch/going.html" >"$scratch/dom.txt"
grep -q 'Stop reloading' "$scratch/dom.txt" || fail "a live page has no button that stops the reloading"
{
  printf '%s\n' "<script>sessionStorage['evoke-stamp']='STAMP';sessionStorage['evoke-same']=5</script>" |
    sed "s/STAMP/$(grep -o 'data-stamp="[0-9]*' "$scratch/going.html" | grep -o '[0-9]*$')/"
  cat "$scratch/going.html"
} >"$scratch/still.html"
look 900 "$scratch/still.html" >"$scratch/dom.txt"
grep -q 'The page stands still: nobody has rewritten' "$scratch/dom.txt" ||
  fail "a page that nobody rewrites does not say that it stands still"
