#!/usr/bin/env bash
# The report of a real run in a real browser: no error, marks in every plot, tables that sort, no
# overflow on a narrow screen. Skipped where no Chromium is installed.
set -euo pipefail
readonly SKIPPED=77
readonly EVOKE=$1/evoke
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || exit "$SKIPPED"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$EVOKE" tune examples/rmsnorm/task.json --evaluations 40 --seed 3 --workers 2 --no-structure \
  --records "$scratch/run.sqlite" >/dev/null 2>"$scratch/tune.txt" || {
  cat "$scratch/tune.txt"
  exit 1
}
"$EVOKE" report --records "$scratch/run.sqlite" --out "$scratch/report.html"

# The page with a script in front that keeps errors, and one behind that looks at the page.
{
  printf '%s\n' '<script>window.wrong=[];window.onerror=(m)=>window.wrong.push(m)</script>'
  cat "$scratch/report.html"
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
say('overflow',document.documentElement.scrollWidth>window.innerWidth);
</script>
SCRIPT
} >"$scratch/looked.html"

for width in 500 1300; do
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --window-size="$width,900" \
    --user-data-dir="$scratch/profile" --dump-dom "file://$scratch/looked.html" \
    >"$scratch/dom.txt" 2>/dev/null
  found=$(grep -o 'FOUND [a-z]*=[^<]*' "$scratch/dom.txt" | sed 's/FOUND //' | tr '\n' ' ')
  [[ $found == "plots=6 empty=0 sorted=true errors=0 unlabelled=0 overflow=false " ]] || {
    echo "at $width pixels the page has: $found"
    exit 1
  }
done
