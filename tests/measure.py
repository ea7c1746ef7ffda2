#!/usr/bin/env python3
"""Figures of the source tree: files a folder, length of functions, comments, call cycles, JSON accessors.

usage: tests/measure.py [BUILD_FOLDER]   (in the root; BUILD_FOLDER holds compile_commands.json)

Needs universal-ctags and, for the call cycles, clang-19 and BUILD_FOLDER. A figure that a tree cannot
give is left out. Nothing here is a test: tests/test_style.sh holds the limits."""
import collections
import json
import os
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FOLDERS = ("base", "bundle", "corpora", "fitness", "ir", "kernels", "tuner")
# Modules whose purpose is JSON: the wire, the records and the files that a user sees.
JSON_MODULES = re.compile(r"(protocol|message|records|_json|export|base/json|bundle/|task_load|launch_plan)")


def sources():
    for folder in FOLDERS:
        for path, _, names in os.walk(folder):
            for name in names:
                if name.endswith((".c", ".h", ".def")):
                    yield os.path.join(path, name)


def function_lengths(files):
    names = "\n".join(f for f in files if f.endswith((".c", ".h")))
    tags = subprocess.run(
        ["ctags", "-L", "-", "-f", "-", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f",
         "--fields=+ne", "--excmd=number"], input=names, capture_output=True, text=True, check=True)
    lengths = []
    for line in tags.stdout.splitlines():
        first, last = re.search(r"\tline:(\d+)", line), re.search(r"\tend:(\d+)", line)
        if first and last:
            lengths.append(int(last[1]) - int(first[1]) + 1)
    return sorted(lengths)


def comment_share(files):
    """Lines that hold nothing but a comment, of all lines."""
    lines = comments = 0
    for file in files:
        inside = False
        for line in open(file, encoding="utf-8"):
            text = line.strip()
            lines += 1
            if inside or text.startswith(("/*", "//")):
                comments += 1
            if text.startswith("/*"):
                inside = True
            if "*/" in text:
                inside = False
    return comments / lines, lines


def json_accessors(files):
    pattern = re.compile(r"\b(json_(object|array|string|integer|real|number|is)_?[a-z_]*|ev_json_[a-z_]+)\(")
    inside = outside = 0
    for file in files:
        count = len(pattern.findall(open(file, encoding="utf-8").read()))
        if JSON_MODULES.search(file):
            inside += count
        else:
            outside += count
    return inside, outside


def verdict_booleans():
    path = next((p for p in ("tuner/search/search.h", "tuner/search.h") if os.path.exists(p)), os.devnull)
    text = open(path, encoding="utf-8").read()
    body = re.search(r"typedef struct search_verdict \{(.*?)\n\} search_verdict;", text, re.S)
    if not body:
        return None
    code = re.sub(r"/\*.*?\*/", "", body[1], flags=re.S)
    return sum(len(names.split(",")) for names in re.findall(r"\bbool ([^;]+);", code))


def calls_of(entry):
    """Edges of one file: ((file, function) or (None, function)) pairs, static functions by file."""
    words = entry["command"].split()
    command = [w for w in words if not w.startswith("-fsanitize")]
    out = command.index("-o")
    del command[out:out + 2]
    command = [w for w in command if w != "-c" and not w.startswith(("-O", "-flto"))]
    if command[0].endswith("ccache"):
        command = command[1:]
    ir = subprocess.run(command + ["-S", "-emit-llvm", "-O0", "-g0", "-o", "-"], cwd=entry["directory"],
                        capture_output=True, text=True)
    file = os.path.relpath(entry["file"])
    defined, edges, current = {}, [], None
    for line in ir.stdout.splitlines():
        begin = re.match(r'define (.*?)@"?([\w.]+)"?\(', line)
        if begin:
            current = begin[2]
            defined[current] = "internal" in begin[1].split()
        elif line == "}":
            current = None
        elif current:
            for callee in re.findall(r'\bcall [^@]*@"?([\w.]+)"?\(', line):
                edges.append((current, callee))
    name = lambda f: (file if defined.get(f) else None, f)
    return file, [name(f) for f in defined], [(name(a), name(b)) for a, b in edges]


def cycles(graph):
    """Strongly connected components of more than one node (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    sys.setrecursionlimit(100000)

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                found.append(part)

    for v in list(graph):
        if v not in index:
            visit(v)
    return sorted(found, key=len, reverse=True)


def call_cycles(build):
    entries = [e for e in json.load(open(os.path.join(build, "compile_commands.json")))
               if os.path.relpath(e["file"]).split("/")[0] in FOLDERS]
    home, calls = {}, []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, defined, edges in pool.map(calls_of, entries):
            for f in defined:
                home[f] = file
            calls += edges
    functions, files = collections.defaultdict(set), collections.defaultdict(set)
    for a, b in calls:
        if b in home:
            functions[a].add(b)
            if home[a] != home[b]:
                files[home[a]].add(home[b])
    return cycles(functions), cycles(files)


def main():
    files = sorted(sources())
    count = collections.Counter(os.path.dirname(f) for f in files)
    print("files a folder:", ", ".join(f"{f} {n}" for f, n in count.most_common(8)))
    lengths = function_lengths(files)
    print(f"functions: {len(lengths)}; lines: median {statistics.median(lengths):g}, "
          f"90th percentile {lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}")
    share, lines = comment_share(files)
    print(f"lines: {lines}; of comments {100 * share:.1f} %")
    inside, outside = json_accessors(files)
    print(f"JSON accessors: {outside} outside the modules of the wire, the records and files, {inside} in them")
    booleans = verdict_booleans()
    if booleans is not None:
        print(f"booleans in search_verdict: {booleans}")
    if len(sys.argv) > 1:
        of_functions, of_files = call_cycles(sys.argv[1])
        print(f"call cycles: of functions {len(of_functions)} (largest {len(of_functions[0]) if of_functions else 0}), "
              f"of files {len(of_files)} (largest {len(of_files[0]) if of_files else 0})")
        for part in of_functions:
            print("  functions:", " ".join(sorted(f for _, f in part)))
        for part in of_files:
            print("  files:", " ".join(sorted(part)))


main()
