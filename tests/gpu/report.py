#!/usr/bin/env python3
"""Puts the results of tests/gpu/run.sh together: results.json, and a short table.

report.py device DEVICES.json ID   prints whether its times are modelled (0 or 1) and its twin
report.py kernels                  prints the kernels of `evoke list --json` on stdin
report.py all FOLDER DEVICE PARTS DATE COMMAND HOME

Of a command that was killed, or whose device failed, there is no object, but the rows that it had
until then: they count, and the result says "cut_off". results.json keeps the parts of earlier runs of the same commit on the same
device; each part has its own date and command.
"""
import json
import math
import os
import subprocess
import sys


def load(folder, name):
    """The JSON object on the last line of a file; None where there is none."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.loads(file.read().strip().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None


def load_rows(folder, name):
    """The JSON objects of FOLDER/NAME.rows, without a last line that was cut off."""
    rows = []
    try:
        with open(os.path.join(folder, name + ".rows"), encoding="utf-8") as file:
            for line in file:
                rows.append(json.loads(line))
    except (OSError, ValueError):
        pass
    return rows


def load_or_rows(folder, name):
    """NAME.json; of a command that left none, its rows; None where there is neither."""
    found = load(folder, name + ".json")
    if found is None:
        rows = load_rows(folder, name)
        found = {"rows": rows, "cut_off": True} if rows else None
    return found


def ending(result):
    """How a command ended, where that was not by itself."""
    return " (cut off)" if result.get("cut_off") else " (stopped)" if result.get("stopped") else ""


def mean_geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def agree(folder):
    """Goldens of the table, and each start's verdict and error here and in the virtual machine."""
    goldens, there, here = (load_or_rows(folder, n) for n in ("goldens", "check-device", "check-vm"))
    rows, words = [], []
    if goldens and goldens.get("cut_off"):
        outcomes = [r["outcome"] for r in goldens["rows"]]
        goldens["rows"] = [r for r in goldens["rows"] if r["outcome"] != "agreed"]
        goldens["plans"] = len(outcomes)
        words.append("goldens cut off after %d launches: %d differ, %d refused" % (
            len(outcomes), outcomes.count("differed"), outcomes.count("refused")))
    elif goldens:
        words.append("%d rows of the table: %d launches, %d differ, %d refused" % (
            goldens["rows"], goldens["plans"], goldens["differed"], goldens["refused"]))
        if goldens["known"]:
            words.append("%d differ by known faults of ptxas" % sum(goldens["known"].values()))
        if goldens.get("tensor"):
            tensor = goldens["tensor"]
            words.append("%d matrix instructions: %d differ, %d refused" % (
                tensor["forms"], len(tensor["differed"]), len(tensor["refused"])))
        if goldens["unfinished"]:
            words.append("no time for %d more" % goldens["unfinished"])
    in_vm = {(r["kernel"], r["start"], r["case"]): r for r in (here or {}).get("rows", [])}
    on_device = (there or {}).get("rows", [])
    for row in on_device:
        other = in_vm.get((row["kernel"], row["start"], row["case"]))
        if other is None:
            continue
        rows.append({"kernel": row["kernel"], "start": row["start"], "case": row["case"],
                     "device": row["verdict"], "vm": other["verdict"], "error_device": row["error"],
                     "error_vm": other["error"], "tolerance": row["tolerance"]})
    if rows:
        alike = sum(r["device"] == r["vm"] for r in rows)
        passed = sum(r["device"] == "pass" for r in rows)
        words.append("%d of %d cases of kernels alike, %d pass%s" % (
            alike, len(rows), passed, ending(there) or ending(here)))
    elif there:
        rows = on_device
        words.append("%d of %d cases of kernels pass, none held against the virtual machine" % (
            sum(r["verdict"] == "pass" for r in rows), len(rows)))
    return {"goldens": goldens, "kernels": rows}, ", ".join(words)


def calibrate(folder):
    result = load_or_rows(folder, "calibrate")
    if not result:
        return None, ""
    done = [r for r in result["rows"] if "value" in r]
    off = [abs(r["deviation_percent"]) for r in done if r["base"] > 0]
    return result, "%d of %d figures, %s; median deviation from %s %.1f %%%s" % (
        len(done), len(result["rows"]), result.get("time_kind", "cut off before the description"),
        result.get("base", "the base"), sorted(off)[len(off) // 2] if off else 0, ending(result))


def rank(folder):
    result = load_or_rows(folder, "rank")
    if not result:
        return None, ""
    if result.get("cut_off"):
        off = [abs(r["modelled_ns"] / r["measured_ns"] - 1) * 100 for r in result["rows"]]
        return result, "cut off after %d variants, mean error %.0f %%" % (len(off), sum(off) / len(off))
    result["samples"] = load_rows(folder, "rank")
    return result, "%d variants against %s: tau %.3f (%.3f at 1 %% apart), rho %.3f, mean error %.0f %%%s" % (
        result["variants"], os.path.basename(result["against"]), result["kendall"],
        result["kendall_apart"], result["spearman"], result["mape"], ending(result))


def times(folder):
    """Textbook, hand-tuned and vendor's times of each timed case."""
    check, vendor = load_or_rows(folder, "check-device"), load_or_rows(folder, "vendor") or {}
    table = {}
    for row in (check or {}).get("rows", []):
        if row.get("ns"):
            key = (row["kernel"], row["case"])
            table.setdefault(key, {"kernel": key[0], "case": key[1], "time_kind": row["time_kind"]})
            table[key][row["start"] + "_ns"] = row["ns"]
    for row in vendor.get("rows", []):
        key = (row["kernel"], row["case"])
        if key in table and "ns" in row:
            table[key].update(vendor_ns=row["ns"], vendor=row["by"], vendor_how=row["how"])
    rows = list(table.values())
    hand = mean_geometric([r["textbook_ns"] / r["hand_ns"] for r in rows if "hand_ns" in r and "textbook_ns" in r])
    words = "%d cases; hand-tuned over textbook %.2fx" % (len(rows), hand)
    against = [r["hand_ns"] / r["vendor_ns"] for r in rows if "vendor_ns" in r and "hand_ns" in r]
    words += "; vendor over hand-tuned %.2fx (%d cases)" % (mean_geometric(against), len(against)) if against \
        else "; vendor: " + (vendor.get("why") or "not run")
    return {"rows": rows, "vendor": vendor}, words if rows else ""


def tune(folder):
    result, again = load(folder, "tune.json"), load_or_rows(folder, "winners")
    if not result:
        return None, ""
    rows = result["rows"]
    words = "%d evaluations, %d of %d rows promoted, %.2fx over textbook (%s)%s" % (
        result["evaluations"], sum(r["promoted"] for r in rows), len(rows),
        mean_geometric([r["speedup"] for r in rows if r["speedup"] > 0]),
        "/".join(sorted({r["time_kind"] for r in rows})), ending(result))
    if again:
        found = [r for r in again["rows"] if r["role"] == "variant"]
        fast = [r["baseline_ns"] / r["ns"] for r in found if r.get("ns")]
        words += "; qualified: %.2fx, %d of %d cases pass" % (
            mean_geometric(fast), sum(r["verdict"] == "pass" for r in found), len(found))
    return {"tune": result, "winners": again}, words


def status_of(folder, part):
    """What run.sh says of a part: whether it failed, its seconds, when it ended, why."""
    try:
        with open(os.path.join(folder, part + ".status"), encoding="utf-8") as file:
            failed, seconds, date, why = (file.read().strip().split(" ", 3) + [""])[:4]
            return failed != "0", int(seconds), date, why
    except (OSError, ValueError):
        return True, 0, "", "it did not run"


def device_of(folder, name):
    found = [d for d in (load(folder, "devices.json") or {"devices": []})["devices"] if d["device"] == name]
    return found[0] if found else {}


def commit_of(home):
    """Of the pack, or of the source tree, with a + where its files are not the commit's."""
    try:
        with open(os.path.join(home, "commit"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        git = ["git", "-C", home]
        head = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        changed = subprocess.run(git + ["diff", "--quiet", "HEAD"], check=False, capture_output=True).returncode
        return head + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine_of(folder):
    """The lines "NAME: WORDS" of machine.txt."""
    try:
        with open(os.path.join(folder, "machine.txt"), encoding="utf-8") as file:
            return dict(line.strip().split(": ", 1) for line in file if ": " in line)
    except OSError:
        return {}


def results_before(folder, results):
    """The parts that earlier runs left, if they are of this device and this commit."""
    before = {}
    try:
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        pass
    same = all(before.get(key) == results[key] for key in ("device", "commit"))
    return before["parts"] if same else {}


def write_whole(path, value):
    """By a rename, so that there is always one whole file."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(path + ".new", path)


def report(folder, device, parts, date, command, home):
    results = {"device": device_of(folder, device), "machine": machine_of(folder), "date": date,
               "command": command, "commit": commit_of(home)}
    results["parts"] = results_before(folder, results)
    lines = []
    for part in parts.split(","):
        failed, seconds, ended, why = status_of(folder, part)
        result, words = globals()[part](folder)
        results["parts"][part] = {"failed": failed, "seconds": seconds, "why": why, "result": result,
                                  "command": command, "date": ended}
        lines.append((part, "FAILED" if failed else "done", seconds, "; ".join(w for w in (words, why) if w)))
    write_whole(os.path.join(folder, "results.json"), results)
    kind = results["device"].get("time_kind", "?")
    print("%s, %s, driver: %s; times are %s; %s" % (
        device, results["device"].get("name", "?"), results["device"].get("driver") or "-", kind, date[:10]))
    for part, status, seconds, words in lines:
        print("%-10s %-7s %4d s  %s" % (part, status, seconds, words))
    print("%s/results.json" % folder)


def main(words):
    if words[:1] == ["device"]:
        with open(words[1], encoding="utf-8") as file:
            listed = json.load(file)
        found = [d for d in listed["devices"] if d["device"] == words[2]]
        if not found:
            print(listed.get("no_gpu", "there are " + ", ".join(d["device"] for d in listed["devices"])),
                  file=sys.stderr)
            return 1
        print(int(found[0]["time_kind"] == "modelled"), found[0]["twin"] or found[0]["device"])
    elif words[:1] == ["kernels"]:
        print("\n".join(t["kernel"] for t in json.load(sys.stdin)["tasks"]))
    elif words[:1] == ["all"] and len(words) == 7:
        report(*words[1:])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
