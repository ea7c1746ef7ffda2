#!/usr/bin/env python3
"""docs/kernels.md, from the shipped tasks and the modelled times of their starts.

    kernels/document.py EVOKE measure         # models the starts; writes results/kernel-floors.json
    kernels/document.py EVOKE measure-changed # the same for the tasks that changed alone
    kernels/document.py EVOKE tune [KERNEL ...] # tunes the kernels, or all; results/kernel-tuned.json; needs ptxas
    kernels/document.py EVOKE tune-missing    # the same for kernels and devices without a row, or whose row has no genome
    kernels/document.py EVOKE                 # writes docs/kernels.md from the tasks and these files
    kernels/document.py EVOKE --check         # exit code 1 if the page or the floors are out of date

EVOKE is the binary. Times are modelled, at the timed case of the search split with the highest
floor, which is the largest shape of a paper; those of tuned variants at held-out cases. A search takes
minutes, so its row names the version that made it, and stays until somebody tunes the kernel again.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

HOME = pathlib.Path(__file__).resolve().parent.parent
FIGURES = HOME / "results" / "kernel-floors.json"
TUNED = HOME / "results" / "kernel-tuned.json"
EVALUATIONS = 100
ARCHITECTURES = (80, 89, 90, 100, 120)  # winners must fit their GPU's and the later ones (tune --assemble)
PAGE = HOME / "docs" / "kernels.md"
PROSE = HOME / "kernels" / "document.md"
DEVICES = ("vm:h200", "vm:a100")
# Fused collectives, and the kernel that is their schedule without shards and without fusion. Their
# own start UNFUSED is the schedule with shards.
FUSED = {"ar_fused_adam": "ar_then_adam", "ar_fused_lamb": "ar_then_lamb",
         "ar_fused_sgd": "ar_then_sgd"}
UNFUSED = "unfused"


def ask(evoke, *words):
    answer = subprocess.run([evoke, *words, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(answer.stdout)


def profile(evoke, kernel, start, case, device):
    answer = ask(evoke, "profile", kernel, "--start", start, "--case", case, "--device", device)
    return {"ns": round(answer["ns"]), "floor_ns": round(answer["floor_ns"])}


def timed(task, *splits):
    return [case["case"] for case in task["cases"]
            if case["use"] == "time" and (not splits or case["split"] in splits)]


def hand_tuned(task):
    """The last start: a later hand-tuned one is better than those before. A reference, which a
    kernel is compared with, is none."""
    starts = json.loads(pathlib.Path(task["path"]).read_text())["starts"]
    return [start["name"] for start in starts if not start.get("reference")][-1]


def schedules(evoke, task):
    """Times of the starts that the table of schedules compares, at all timed cases."""
    starts = {"hand": hand_tuned(task)}
    if task["kernel"] in FUSED:
        starts[UNFUSED] = UNFUSED
    return {device: {case: {name: profile(evoke, task["kernel"], start, case, device)["ns"]
                            for name, start in starts.items()} for case in timed(task)}
            for device in DEVICES}


def measure(evoke, tasks, reuse):
    rows = []
    known = json.loads(FIGURES.read_text())["kernels"] if reuse else []
    for task in tasks:
        kernel = task["kernel"]
        same = [row for row in known if row["task_sha256"] == task["task_sha256"]]
        rows += same
        if same:
            continue
        starts = {"textbook": "textbook", "hand": hand_tuned(task)}
        floors = {case: profile(evoke, kernel, starts["hand"], case, DEVICES[0])["floor_ns"]
                  for case in timed(task, "search")}
        largest = max(floors, key=floors.get)
        times = {device: {name: profile(evoke, kernel, start, largest, device)
                          for name, start in starts.items()} for device in DEVICES}
        rows.append({"kernel": kernel, "task_sha256": task["task_sha256"], "case": largest,
                     "times": times})
        if kernel in FUSED or kernel in FUSED.values():
            rows[-1]["schedules"] = schedules(evoke, task)
        print(f"{kernel}, {largest}", file=sys.stderr)
    FIGURES.write_text(json.dumps({"command": "kernels/document.py build/evoke measure",
                                   "kernels": rows}, indent=1) + "\n")


def git(*words):
    return subprocess.run(["git", "-C", HOME, *words], stdout=subprocess.PIPE, check=True,
                          text=True).stdout.strip()


def tuned():
    return json.loads(TUNED.read_text())["rows"] if TUNED.exists() else []


def tune(evoke, tasks, kernels, missing):
    """Tunes on each device, and writes the file after each search."""
    if git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", ":!docs"):
        sys.exit("sources have changes that no commit has: no version can be named; commit them first")
    unknown = set(kernels) - {task["kernel"] for task in tasks}
    if unknown:
        sys.exit(f"no such kernel: {', '.join(sorted(unknown))}")
    version = git("rev-parse", "--short=8", "HEAD")
    done = {(row["kernel"], row["device"], row["task_sha256"]) for row in tuned()
            if missing and "genome" in row}
    jobs = [(task, device) for device in DEVICES for task in tasks
            if (not kernels or task["kernel"] in kernels) and
            (task["kernel"], device, task["task_sha256"]) not in done]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        searches = [pool.submit(tune_one, evoke, task, device) for task, device in jobs]
        for search in concurrent.futures.as_completed(searches):
            if search.exception():
                pool.shutdown(cancel_futures=True)
            row = {**search.result(), "version": version}
            rows = [old for old in tuned() if (old["kernel"], old["device"]) != (row["kernel"], row["device"])]
            rows = sorted(rows + [row], key=lambda row: (row["device"], row["kernel"]))
            TUNED.write_text(json.dumps({"command": "kernels/document.py build/evoke tune",
                                         "rows": rows}, indent=1) + "\n")
            print(f"{row['kernel']}, {row['device']}", file=sys.stderr)


def architectures(evoke, device):
    sm, = [known["sm"] for known in ask(evoke, "devices")["devices"] if known["device"] == device]
    return ",".join(f"sm_{number}" for number in ARCHITECTURES if number >= sm)


def tune_one(evoke, task, device):
    """The row of one search, which has one worker, since as many searches run as there are processors."""
    answer = ask(evoke, "tune", task["kernel"], "--device", device, "--seed", "1", "--workers", "1",
                 "--evaluations", str(EVALUATIONS), "--assemble", architectures(evoke, device))
    keep = ("case", "baseline_ns", "hand_ns", "best_ns", "floor_ns")
    return {"kernel": task["kernel"], "device": device, "task_sha256": task["task_sha256"],
            "evaluations": answer["evaluations"], "genome": answer["rows"][0]["genome"],
            "cases": [{key: case[key] for key in keep} for case in answer["rows"]]}


def tuned_cells(row, name):
    """At the held-out case `name`."""
    if not row:
        return ["", "", "", ""]
    case = next(case for case in row["cases"] if case["case"] == name)
    shares = [f"{100 * case['floor_ns'] / case[time]:.0f} %" for time in ("hand_ns", "best_ns")]
    gains = [f"{case[time] / case['best_ns']:.2f}x" for time in ("hand_ns", "baseline_ns")]
    return shares + gains


def tuned_table(tasks):
    """Rows of a task that has changed since are left out."""
    now = {task["kernel"]: task["task_sha256"] for task in tasks}
    rows = {(row["kernel"], row["device"]): row for row in tuned()
            if row["task_sha256"] == now.get(row["kernel"])}
    header = ["kernel", "held-out case"]
    for device in DEVICES:
        header += [f"{device}: hand", "tuned", "tuned over hand", "over textbook"]
    table = "| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|\n"
    for task in tasks:
        of = [rows.get((task["kernel"], device)) for device in DEVICES]
        if not any(of):
            continue
        case = max(next(filter(None, of))["cases"], key=lambda case: case["floor_ns"])["case"]
        cells = [f"`{task['kernel']}`", f"`{case}`"] + [c for row in of for c in tuned_cells(row, case)]
        table += "| " + " | ".join(cells) + " |\n"
    return table


def share(time):
    return f"{100 * time['floor_ns'] / time['ns']:.0f} %"


def row_of(task, figures):
    cells = [f"`{task['kernel']}`", task["family"], task["paper"], f"`{figures['case']}`"]
    for device in DEVICES:
        times = figures["times"][device]
        cells += [share(times["textbook"]), share(times["hand"]),
                  f"{times['textbook']['ns'] / times['hand']['ns']:.1f}x"]
    return "| " + " | ".join(cells) + " |\n"


def compared(kernel, case, figures):
    """The cells of a row of the table of schedules."""
    cells = [f"`{kernel}`", f"`{case}`"]
    for device in DEVICES:
        own = figures[kernel]["schedules"][device][case]
        whole = figures[FUSED[kernel]]["schedules"][device][case]["hand"]
        cells.append(f"{own['hand'] / 1000:.1f} us")
        cells += [f"{ns / 1000:.1f} us, {ns / own['hand']:.2f}x" for ns in (own[UNFUSED], whole)]
    return cells


def schedule_table(tasks, figures):
    header = ["kernel", "case"]
    for device in DEVICES:
        header += [f"{device}: fused", "unfused, sharded", "unfused, unsharded"]
    table = "| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|\n"
    for task in tasks:
        for case in timed(task) if task["kernel"] in FUSED else []:
            table += "| " + " | ".join(compared(task["kernel"], case, figures)) + " |\n"
    return table


def page(tasks, figures):
    header = ["kernel", "family", "paper", "case"]
    for device in DEVICES:
        header += [f"{device}: textbook", "hand", "hand over textbook"]
    table = "| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|\n"
    table += "".join(row_of(task, figures[task["kernel"]]) for task in tasks)
    what = "| kernel | what | timed at |\n|---|---|---|\n"
    for task in tasks:
        cases = ", ".join(f"`{case}`" for case in timed(task))
        what += f"| `{task['kernel']}` | {task['doc']} | {cases} |\n"
    text = PROSE.read_text().replace("@TIMES@\n", table).replace("@KERNELS@\n", what)
    text = text.replace("@TUNED@\n", tuned_table(tasks))
    return text.replace("@SCHEDULES@\n", schedule_table(tasks, figures))


def main():
    evoke, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    tasks = ask(evoke, "list")["tasks"]
    if mode.startswith("measure"):
        measure(evoke, tasks, mode == "measure-changed")
        return 0
    if mode in ("tune", "tune-missing"):
        tune(evoke, tasks, sys.argv[3:], mode == "tune-missing")
        return 0
    figures = {row["kernel"]: row for row in json.loads(FIGURES.read_text())["kernels"]}
    stale = [task["kernel"] for task in tasks
             if figures.get(task["kernel"], {}).get("task_sha256") != task["task_sha256"]]
    if stale:
        print(f"{FIGURES.relative_to(HOME)} is not of these tasks as they are: {', '.join(stale)}; "
              "run kernels/document.py EVOKE measure", file=sys.stderr)
        return 1
    text = page(tasks, figures)
    if mode == "--check":
        if PAGE.read_text() == text:
            return 0
        print("docs/kernels.md is out of date; run kernels/document.py EVOKE", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
