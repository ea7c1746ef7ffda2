#!/usr/bin/env python3
"""Puts the results of tests/gpu/run.sh together: results.json, and a short table.

report.py device DEVICES.json ID   prints whether its times are modelled (0 or 1) and its twin
report.py kernels                  prints the kernels of `evoke list --json` on stdin
report.py all FOLDER DEVICE PARTS DATE COMMAND HOME
"""
import json
import math
import os
import sys

PARTS = ("agree", "calibrate", "rank", "times", "tune")


def load(folder, name):
    """The JSON object on the last line of a file; None where there is none."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.loads(file.read().strip().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None


def mean_geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def agree(folder):
    """Goldens of the table, and each start's verdict and error here and in the virtual machine."""
    goldens, there, here = (load(folder, n) for n in ("goldens.json", "check-device.json", "check-vm.json"))
    rows, words = [], []
    if goldens:
        words.append("%d rows of the table: %d launches, %d differ, %d refused" % (
            goldens["rows"], goldens["plans"], goldens["differed"], goldens["refused"]))
        if goldens.get("tensor"):
            tensor = goldens["tensor"]
            words.append("%d matrix instructions: %d differ, %d refused" % (
                tensor["forms"], len(tensor["differed"]), len(tensor["refused"])))
        if goldens["unfinished"]:
            words.append("no time for %d more" % goldens["unfinished"])
    in_vm = {(r["kernel"], r["start"], r["case"]): r for r in (here or {}).get("rows", [])}
    for row in (there or {}).get("rows", []):
        other = in_vm.get((row["kernel"], row["start"], row["case"]))
        if other is None:
            continue
        rows.append({"kernel": row["kernel"], "start": row["start"], "case": row["case"],
                     "device": row["verdict"], "vm": other["verdict"], "error_device": row["error"],
                     "error_vm": other["error"], "tolerance": row["tolerance"]})
    if rows:
        alike = sum(r["device"] == r["vm"] for r in rows)
        passed = sum(r["device"] == "pass" for r in rows)
        words.append("%d of %d cases of kernels alike, %d pass" % (alike, len(rows), passed))
    return {"goldens": goldens, "kernels": rows}, ", ".join(words)


def calibrate(folder):
    result = load(folder, "calibrate.json")
    if not result:
        return None, ""
    done = [r for r in result["rows"] if "value" in r]
    off = [abs(r["deviation_percent"]) for r in done if r["base"] > 0]
    return result, "%d of %d figures, %s; median deviation from %s %.1f %%" % (
        len(done), len(result["rows"]), result["time_kind"], result["base"],
        sorted(off)[len(off) // 2] if off else 0)


def rank(folder):
    result = load(folder, "rank.json")
    if not result:
        return None, ""
    return result, "%d variants against %s: tau %.3f (%.3f at 1 %% apart), rho %.3f, mean error %.0f %%" % (
        result["variants"], os.path.basename(result["against"]), result["kendall"],
        result["kendall_apart"], result["spearman"], result["mape"])


def times(folder):
    """Textbook, hand-tuned and vendor's times of each timed case."""
    check, vendor = load(folder, "check-device.json"), load(folder, "vendor.json") or {}
    table = {}
    for row in (check or {}).get("rows", []):
        if row.get("ns"):
            key = (row["kernel"], row["case"])
            table.setdefault(key, {"kernel": key[0], "case": key[1], "time_kind": row["time_kind"]})
            table[key][row["start"] + "_ns"] = row["ns"]
    for row in vendor.get("rows", []):
        key = (row["kernel"], row["case"])
        if key in table:
            table[key]["vendor_ns"] = row["ns"]
            table[key]["vendor"] = row["by"]
    rows = list(table.values())
    hand = mean_geometric([r["textbook_ns"] / r["hand_ns"] for r in rows if "hand_ns" in r and "textbook_ns" in r])
    words = "%d cases; hand-tuned over textbook %.2fx" % (len(rows), hand)
    against = [r["hand_ns"] / r["vendor_ns"] for r in rows if "vendor_ns" in r and "hand_ns" in r]
    words += "; vendor over hand-tuned %.2fx (%d cases)" % (mean_geometric(against), len(against)) if against \
        else "; vendor: " + vendor.get("why", "not run")
    return {"rows": rows, "vendor": vendor}, words if rows else ""


def tune(folder):
    result, again = load(folder, "tune.json"), load(folder, "winners.json")
    if not result:
        return None, ""
    rows = result["rows"]
    words = "%d evaluations, %d of %d rows promoted, %.2fx over textbook (%s)" % (
        result["evaluations"], sum(r["promoted"] for r in rows), len(rows),
        mean_geometric([r["speedup"] for r in rows if r["speedup"] > 0]),
        "/".join(sorted({r["time_kind"] for r in rows})))
    if again:
        found = [r for r in again["rows"] if r["role"] == "variant"]
        fast = [r["baseline_ns"] / r["ns"] for r in found if r.get("ns")]
        words += "; measured again %.2fx, %d of %d cases pass" % (
            mean_geometric(fast), sum(r["verdict"] == "pass" for r in found), len(found))
    return {"tune": result, "winners": again}, words


def status_of(folder, part):
    try:
        with open(os.path.join(folder, part + ".status"), encoding="utf-8") as file:
            failed, seconds, why = (file.read().strip().split(" ", 2) + [""])[:3]
            return failed != "0", int(seconds), why
    except (OSError, ValueError):
        return True, 0, "it did not run"


def device_of(folder, name):
    found = [d for d in (load(folder, "devices.json") or {"devices": []})["devices"] if d["device"] == name]
    return found[0] if found else {}


def report(folder, device, parts, date, command, home):
    results = {"device": device_of(folder, device), "date": date, "command": command, "parts": {}}
    try:
        with open(os.path.join(home, "commit"), encoding="utf-8") as file:
            results["commit"] = file.read().strip()
    except OSError:
        pass
    lines = []
    for part in (p for p in PARTS if p in parts.split(",")):
        failed, seconds, why = status_of(folder, part)
        result, words = globals()[part](folder)
        results["parts"][part] = {"failed": failed, "seconds": seconds, "why": why, "result": result}
        lines.append((part, "FAILED" if failed else "done", seconds, "; ".join(w for w in (words, why) if w)))
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, sort_keys=True)
        file.write("\n")
    kind = results["device"].get("time_kind", "?")
    print("%s, %s, driver: %s; times are %s; %s" % (
        device, results["device"].get("name", "?"), results["device"].get("driver") or "-", kind, date))
    for part, status, seconds, words in lines:
        print("%-10s %-7s %4d s  %s" % (part, status, seconds, words))
    print("%s/results.json" % folder)


def main(words):
    if words[:1] == ["device"]:
        with open(words[1], encoding="utf-8") as file:
            found = [d for d in json.load(file)["devices"] if d["device"] == words[2]]
        if not found:
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
