#!/usr/bin/env python3
"""evoke check of several tasks on one device, a process a task, as many at a time as there are processors.

check.py EVOKE DEVICE ROWS TASK...

For tests/gpu/run.sh, on virtual machines: on a GPU, processes beside each other would disturb each other's times.
Prints one object as `evoke check TASK... --json` does, with the rows in the order of the tasks. The rows of a task go to
the file ROWS as soon as the task is checked. A signal stops all processes; the object then has "stopped": true. Where a
process left no object, its rows count, and the object has "cut_off": true.
Exit codes: 0 all pass, 1 something failed, else the first code of a process that is not 0.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

LISTS = ("kernels", "rows", "replays", "stresses")


class Tasks:
    """The tasks of a check: not begun, running, ended."""

    def __init__(self, evoke, device, rows, tasks, folder):
        self.evoke, self.device, self.rows, self.tasks, self.folder = evoke, device, rows, tasks, folder
        self.begun, self.is_stopped = 0, False
        self.running = {}  # number of the task: process
        self.codes = {}

    def path(self, number, kind):
        return os.path.join(self.folder, "%d.%s" % (number, kind))

    def begin(self):
        number, self.begun = self.begun, self.begun + 1
        with open(self.path(number, "json"), "wb") as out:
            self.running[number] = subprocess.Popen(
                [self.evoke, "check", self.tasks[number], "--device", self.device, "--json", "--rows",
                 self.path(number, "rows")], stdout=out)

    def end(self, number, code):
        self.codes[number] = code if code >= 0 else 3  # ended by a signal
        del self.running[number]
        with open(self.rows, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in self.rows_of(number))

    def stop(self, *_):
        self.is_stopped = True
        for process in self.running.values():
            process.terminate()

    def run(self, most):
        while self.running or (self.begun < len(self.tasks) and not self.is_stopped):
            while self.begun < len(self.tasks) and len(self.running) < most and not self.is_stopped:
                self.begin()
            for number, process in list(self.running.items()):
                if process.poll() is not None:
                    self.end(number, process.returncode)
            time.sleep(0.02)

    def rows_of(self, number):
        rows = []
        try:
            with open(self.path(number, "rows"), encoding="utf-8") as file:
                for line in file:
                    rows.append(json.loads(line))
        except (OSError, ValueError):
            pass
        return rows

    def object_of(self, number):
        try:
            with open(self.path(number, "json"), encoding="utf-8") as file:
                return json.loads(file.read().strip().splitlines()[-1])
        except (OSError, ValueError, IndexError):
            return {"rows": self.rows_of(number), "cut_off": True}


def main(words):
    if len(words) < 4:
        sys.exit(__doc__)
    all_of = {key: [] for key in LISTS}
    with tempfile.TemporaryDirectory() as folder:
        tasks = Tasks(words[0], words[1], words[2], words[3:], folder)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, tasks.stop)
        with open(words[2], "w", encoding="utf-8"):
            pass
        tasks.run(len(os.sched_getaffinity(0)))
        found = [tasks.object_of(number) for number in range(tasks.begun)]
    for one in found:
        for key in LISTS:
            all_of[key] += one.get(key, [])
    is_stopped = tasks.is_stopped or any(one.get("stopped") for one in found)
    codes = [tasks.codes[number] for number in sorted(tasks.codes)]
    all_of["verdict"] = "fail" if 1 in codes else "stopped" if is_stopped else "setup" if any(codes) else "pass"
    if is_stopped:
        all_of["stopped"] = True
    if any(one.get("cut_off") for one in found):
        all_of["cut_off"] = True
    print(json.dumps(all_of))
    return 1 if 1 in codes else next((code for code in codes if code), 3 if is_stopped else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
