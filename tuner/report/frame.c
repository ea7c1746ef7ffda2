/* Report, frame: head and foot of a page, with its style sheet and its scripts. The page of a run
 * that goes on reloads itself. */
#include "tuner/report/inside.h"

#include <inttypes.h>
#include <stdio.h>

static const char STYLE[] =
    ":root{color-scheme:light dark;--ink:#1c2330;--paper:#fff;--soft:#5b6677;--line:#dfe4ea;"
    "--dots:#9aa8bb;--best:#0b62c4;--pass:#1c7f4b;--bar:#b3402f;--panel:#f6f8fa}"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#12161d;--soft:#9aa6b6;"
    "--line:#2b333f;--dots:#5d6b7f;--best:#6cb0ff;--pass:#57c98c;--bar:#e88a78;--panel:#1a202a}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:76rem;padding:1.2rem;background:"
    "var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem;margin:"
    "0}h2{margin:2.4rem 0 .4rem;border-top:2px solid var(--line);padding-top:1rem}h3{margin:1.4rem "
    "0 .4rem;font-size:1.05rem}p,li{max-width:46rem}.soft{color:var(--soft)}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}th,td{padding"
    ":.3rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}th.t,td.t"
    "{text-align:left}thead th{vertical-align:bottom}th button{font:inherit;font-weight:600;color:"
    "inherit;background:none;border:0;padding:0;cursor:pointer}th[aria-sort=ascending] button::"
    "after{content:' \\2191'}th[aria-sort=descending] button::after{content:' \\2193'}"
    ".plots{display:grid;margin-top:.8rem;grid-template-columns:repeat(auto-fit,minmax(min(26rem,"
    "100%),1fr));gap:"
    "1rem}figure{"
    "margin:0;background:var(--panel);padding:.6rem;border-radius:6px}figcaption{font-size:.85rem;"
    "color:var(--soft)}svg{width:100%;height:auto;display:block}.grid{stroke:var(--line);fill:none}"
    "details{margin:.8rem "
    "0}summary{cursor:pointer;font-weight:600}.tick,.label,.name{font-size:14px;fill:var(--soft)}."
    "name{fill:var(--ink)}.dots{stroke:"
    "var(--dots);stroke-width:4;stroke-linecap:round;fill:none;opacity:.6}.best{stroke:var(--best);"
    "stroke-width:2.2;fill:none}.member{fill:var(--best);stroke:var(--paper)}.bar{fill:var(--bar)}"
    ".before{fill:var(--dots)}.after{fill:var(--best)}.key{display:inline-block;width:.7rem;height:"
    ".7rem}.key.before{background:var(--dots)}.key.after{background:var(--best)}"
    ".bar.passed{fill:var(--pass)}a{color:var(--best)}"
    "#live{background:var(--panel);padding:.5rem .8rem;border-radius:6px;max-width:none}#live "
    "button"
    "{font:inherit;margin-left:.6rem}.edits>li{max-width:none;margin-bottom:.8rem}.source{margin:"
    ".2rem 0;color:var(--soft)}.diff{overflow-x:auto;background:var(--panel);padding:.6rem;"
    "font-size:.8rem;line-height:1.35}ins,del{text-decoration:none}ins{color:var(--pass)}del{color:"
    "var(--bar)}.share{display:inline-block;width:5rem;height:.6rem;border:1px solid var(--line);"
    "margin:0 .3rem}.share .part{display:block;height:100%;background:var(--best)}.roof{stroke:"
    "var(--soft);stroke-width:2;fill:none}.point{stroke:var(--paper)}.point.base{fill:none;stroke:"
    "var(--ink);stroke-width:2}"
    ".point.hand{fill:var(--pass)}.point.tuned{fill:var(--best)}a:focus-visible,button:focus-"
    "visible"
    ",summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--best);outline-offset:"
    "2px}"
    /* On paper nothing can be scrolled: the widest table fits a page of A4. */
    "@media print{:root{color-scheme:light}body{max-width:none;padding:0;font-size:10pt}figure,tr{"
    "break-inside:avoid}h2,h3{break-after:avoid}.plots{grid-template-columns:1fr 1fr}.wide,.diff{"
    "overflow:visible}.diff{white-space:pre-wrap}table{font-size:7pt}th,td{padding:.1rem .25rem}"
    "th button{white-space:normal}#live button{display:none}}";

/* Sorts a table by the column whose button was pressed. */
static const char SORT[] =
    "document.querySelectorAll('table.sorts').forEach(t=>{const hs=[...t.tHead.rows[0].cells];"
    "hs.forEach((h,i)=>h.querySelector('button').addEventListener('click',()=>{const up=h."
    "getAttribute('aria-sort')==='descending';hs.forEach(o=>o.removeAttribute('aria-sort'));h."
    "setAttribute('aria-sort',up?'ascending':'descending');const key=r=>{const c=r.cells[i];return "
    "c.dataset.v!==undefined?+c.dataset.v:c.textContent};[...t.tBodies[0].rows].sort((a,b)=>{const "
    "x=key(a),y=key(b),d=typeof x==='number'&&typeof y==='number'?x-y:String(x).localeCompare("
    "String(y));return up?d:-d}).forEach(r=>t.tBodies[0].append(r))}))});";

/* Reloads the page of a run that goes on. A page whose stamp stays the same over RELOADS reloads
 * stands still: its run has died, and the page says so. Open parts and the focus survive a reload.
 * The user may stop the reloading (WCAG 2.2.2). */
static const char RELOAD[] =
    "(()=>{const box=document.getElementById('live'),say=box.querySelector('span'),button="
    "box.querySelector('button'),stamp=box.dataset.stamp;const keep=(k,v)=>{try{return "
    "v===undefined"
    "?sessionStorage.getItem('evoke-'+k):sessionStorage.setItem('evoke-'+k,v)}catch(e){return "
    "null}}"
    ";const same=keep('stamp')===stamp?1+Number(keep('same')):0;keep('stamp',stamp);keep('same',"
    "same);const forgets=keep('stamp')===null,still=same>=6||(forgets&&Date.now()/1000-stamp>60);"
    "const parts=[...document.querySelectorAll('details')],stops=[...document.querySelectorAll("
    "'a,button,summary')];(keep('open')||'').split(',').forEach(i=>{if(i&&parts[i])parts[i].open="
    "true});const "
    "focus=keep('focus');if(focus&&stops[focus])stops[focus].focus({preventScroll:true}"
    ");let paused=keep('paused')==='1';const "
    "show=()=>{button.hidden=false;button.textContent=still?"
    "'Reload':paused?'Go on reloading':'Stop reloading'};if(still){box.dataset.still='';say."
    "textContent+=' The page stands still: nobody has rewritten it for a minute.'}const again=()=>{"
    "keep('open',parts.map((p,i)=>p.open?i:'').filter(i=>i!=='').join(','));const at=stops.indexOf("
    "document.activeElement);keep('focus',at<0?'':at);location.reload()};button.addEventListener("
    "'click',()=>{if(still){keep('same',0);again()}paused=!paused;keep('paused',paused?1:0);show()}"
    ")"
    ";show();if(!still)setInterval(()=>{if(!paused&&!document.hidden&&getSelection().isCollapsed)"
    "again()},10000)})();";

static void show_state(const report_state *state, ev_str *out) {
    if (state == NULL || state->text == NULL)
        return;
    if (state->is_live)
        ev_str_printf(out, "<p id=\"live\" data-stamp=\"%" PRId64 "\"><span>", state->stamp);
    else
        ev_str_append(out, "<p class=\"state\"><span>");
    report_escape(out, state->text);
    ev_str_append(out, state->is_live ? "</span><button type=\"button\" hidden></button></p>\n"
                                      : "</span></p>\n");
}

void report_begin_page(const report_head *head, ev_str *out) {
    ev_str_append(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                       "name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>"
                       "Evoke: tuned kernels</title><style>");
    ev_str_append(out, STYLE);
    ev_str_append(out, "</style></head>\n<body><header><h1>Tuned kernels</h1>");
    if (head->device != NULL) {
        ev_str_append(out, "<p class=\"soft\">");
        report_escape(out, head->gpu_name != NULL ? head->gpu_name : "");
        ev_str_append(out, head->gpu_name != NULL ? " (" : "");
        report_escape(out, head->device);
        ev_str_append(out, head->gpu_name != NULL ? ")" : "");
        ev_str_printf(out, ", seed %" PRIu64 "</p>", head->seed);
    }
    show_state(head->state, out);
    ev_str_append(out, "</header>\n<main>\n");
}

void report_end_page(const report_head *head, ev_str *out) {
    ev_str_append(out, "</main>\n<script>");
    ev_str_append(out, SORT);
    if (head->state != NULL && head->state->is_live)
        ev_str_append(out, RELOAD);
    ev_str_append(out, "</script></body></html>\n");
}
