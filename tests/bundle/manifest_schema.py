"""Holds bundle/manifest.schema.json against bundle/manifest.def, against a real bundle, and against
the reader: what the schema refuses, the reader refuses, and each lie of shape is refused by both.

manifest_schema.py SCHEMA TABLE LIBRARY BUNDLE-FOLDER"""

import copy
import ctypes
import json
import os
import re
import sys

import jsonschema

KINDS = {"STRING": "string", "INTEGER": "integer", "NUMBER": "number", "BOOL": "boolean", "ARRAY": "array",
         "OBJECT": "object"}
# an object of each kind stands at these places of the manifest that `full` makes
PLACES = {
    "root": [], "file": ["files", "*"], "kernel": ["kernels", 0], "argument": ["kernels", 0, "arguments", 0],
    "symbol": ["kernels", 0, "symbols", 0], "variant": ["kernels", 0, "variants", 0], "ranks": ["kernels", 0, "ranks"],
}
VARIANT = PLACES["variant"]
PLACES.update({
    "tried": VARIANT + ["tried"], "qualified": VARIANT + ["qualified", 0],
    "trial": VARIANT + ["qualified", 0, "cases", 0], "time": VARIANT + ["qualified", 0, "cases", 0, "variant"],
    "launch": VARIANT + ["launch"], "step": VARIANT + ["launch", "steps", 0], "loop": VARIANT + ["launch", "steps", 1],
    "value": VARIANT + ["launch", "steps", 0, "arguments", 0], "scratch": VARIANT + ["launch", "scratch", 0],
    "gpu": VARIANT + ["gpu"], "resources": VARIANT + ["resources"],
    "cubin": VARIANT + ["cubins", 0], "case": VARIANT + ["cases", 0], "range": VARIANT + ["ranges", 0], "provenance": VARIANT + ["provenance"],
})
# keys that the object at that place cannot have
ELSEWHERE = {("argument", "before"): ["kernels", 0, "arguments", 1], ("argument", "by_rank"): ["kernels", 0, "arguments", 1],
             ("argument", "of"): ["kernels", 0, "arguments", 2], ("scratch", "of"): VARIANT + ["launch", "scratch", 1]}
WRONG = {str: 5, int: "five", float: "five", bool: "yes", list: {}, dict: []}
TIME = {"ns": 2.0, "low_ns": 1.0, "high_ns": 3.0}

# a place below an object, a value that cannot stand there
LIES = [
    ("root", "schema", "other"), ("root", "version", 5), ("root", "version", 3), ("root", "signer", "00"),
    ("variant", "sha256", "00"), ("variant", "time_kind", "guessed"), ("variant", "error", -1e308),
    ("variant", "tolerance", -1), ("variant", "meaning", "harmless"), ("variant", "disabled", ""),
    ("variant", "changes", []), ("variant", "changes", [5]), ("variant", "alignments", {"x": 3}),
    ("variant", "alignments", {"x": 8192}), ("variant", "ptx_version", "7"), ("variant", "ptx_version", "7.85"),
    ("variant", "target", "compute_90"), ("variant", "least_cuda", "new"), ("variant", "least_driver", 0),
    ("variant", "tried", {}), ("variant", "qualified", [{}]), ("argument", "align", 24), ("launch", "grid", ["1", "1"]),
    ("step", "grid", ["1", "1"]), ("step", "arguments", []), ("step", "arguments", [5]), ("loop", "swap", [["tmp"]]),
    ("loop", "swap", [["tmp", "more", "tmp"]]), ("loop", "steps", []), ("loop", "repeat", 2), ("launch", "steps", []),
    ("launch", "grid", ["1", "1", "1", "1"]), ("launch", "block", ["1", "1", 1]), ("launch", "macros", {"T": "4"}),
    ("gpu", "sm", -1), ("gpu", "sm", 10000), ("gpu", "sms", -1), ("gpu", "driver_names", [1]),
    ("variant", "cubins", []), ("cubin", "arch", "compute_90"), ("cubin", "sha256", "00"), ("cubin", "registers", 256),
    ("cubin", "registers", -1), ("cubin", "spill_bytes", -1), ("gpu", "sm_mhz", 0), ("gpu", "sm_mhz", 1e6), ("provenance", "records_sha256", "A" * 64),
    ("provenance", "records_sha256", "0" * 63),
    ("resources", "registers", -1), ("resources", "shared_bytes", 2**32), ("resources", "dynamic_shared_bytes", -1),
    ("resources", "local_bytes", -1), ("resources", "max_threads", -1), ("case", "shape", {"n": "64"}),
    ("case", "error", -1), ("case", "baseline_ns", 0), ("case", "baseline_low_ns", 0), ("case", "baseline_high_ns", -1), ("case", "ns", 0), ("provenance", "edits", [None]),
    ("qualified", "verdict", "good"), ("qualified", "time_kind", "guessed"), ("qualified", "verdict", "pass"),
    ("trial", "verdict", "good"), ("trial", "error", -1), ("time", "ns", 0), ("time", "low_ns", -1),
    ("ranks", "scope", "gpu"), ("ranks", "barriers", ["during"]), ("ranks", "barriers", ["before", "before"]),
    ("variant", "resident", []), ("variant", "resident", [5]),
]
# keys that are taken out together with what needs them, or alone
GONE = [("variant", ["target"]), ("variant", ["ptx_version"]), ("variant", ["least_cuda"]), ("variant", ["least_driver"]),
        ("variant", ["changes"]), ("trial", ["start_name"]), ("trial", ["start"]), ("trial", ["beside_start"]),
        ("trial", ["baseline"]), ("trial", ["variant"]), ("case", ["low_ns"])]


def at(document, place):
    for part in place:
        document = document[part if part != "*" else sorted(document)[0]]
    return document


def rows_of(table):
    pattern = r'^MANIFEST_KEY\((\w+), "(\w+)", (\w+), (true|false), "'
    return re.findall(pattern, open(table, encoding="ascii").read(), re.MULTILINE)


def hold_table(schema, rows):
    """Each row is a property of its kind, required as the row says, and there are no others."""
    objects = {}
    for kind, name, type_name, required in rows:
        objects.setdefault(kind.lower(), {})[name] = (KINDS[type_name], required == "true")
    assert set(objects) == set(PLACES), set(objects) ^ set(PLACES)
    assert set(schema["$defs"]) == set(objects) - {"root"}, set(schema["$defs"]) ^ set(objects)
    for kind, keys in objects.items():
        form = schema if kind == "root" else schema["$defs"][kind]
        assert form["additionalProperties"] is False, kind
        assert set(form["properties"]) == set(keys), (kind, set(form["properties"]) ^ set(keys))
        assert set(form["required"]) == {k for k, (_, required) in keys.items() if required}, kind
        for name, (type_name, _) in keys.items():
            value = form["properties"][name]
            if "$ref" in value:
                value = schema["$defs"][value["$ref"].rsplit("/", 1)[1]]
            assert value["type"] == type_name, (kind, name, value["type"])


def stepwise(manifest):
    """The manifest whose variant is several launches."""
    manifest = copy.deepcopy(manifest)
    variant = manifest["kernels"][0]["variants"][0]
    step = {"entry": variant["entry"], "arguments": [{"type": "f32", "value": "1"}, "tmp"], **variant["launch"]}
    macros = step.pop("macros")
    loop = {"repeat": "2", "counter": "turn", "swap": [["tmp", "more"]], "steps": [step]}
    scratch = [{"name": "tmp", "bytes": "64"}, {"name": "more", "bytes": "64", "of": "tmp"}]
    manifest["kernels"][0]["ranks"] = {"count": "2", "scope": "sys"}
    variant["launch"] = {"macros": macros, "scratch": scratch, "steps": [step, loop]}
    return manifest


def full(manifest):
    """The manifest with every optional key, as a bold, qualified and stressed variant has them."""
    manifest = copy.deepcopy(manifest)
    kernel = manifest["kernels"][0]
    variant = kernel["variants"][0]
    kernel.setdefault("starts", copy.deepcopy(kernel["baselines"]))
    kernel.setdefault("symbols", [{"name": "s", "type": "f32", "count": "1"}])
    kernel["arguments"].insert(0, {"name": "p.x", "kind": "in", "type": "f32", "expression": "1", "align": 32,
                                   "offset": 0, "struct_bytes": 8})
    kernel["arguments"][1:1] = [
        {"name": "flags", "kind": "inout", "type": "u32", "expression": "1", "before": "0", "by_rank": True},
        {"name": "all_flags", "kind": "peers", "type": "u64", "expression": "2", "of": "flags"}]
    kernel["ranks"] = {"count": "2", "scope": "sys", "barriers": ["before", "after"]}
    variant["resident"] = [variant["entry"]]
    gpu = dict(variant["gpu"])
    variant.update(meaning="bold", default=True, changes=["leaves a barrier out"], disabled="it loses",
                   alignments={kernel["arguments"][0]["name"]: 64},
                   tried={"device": "vm:h200", "shapes": 1, "runs": 2, "seed": 1})
    variant["qualified"] = [{
        "gpu": gpu, "driver": "550", "time_kind": "measured", "verdict": "slower", "reason": "it loses",
        "cases": [{"case": "time", "verdict": "slower", "error": 0.0, "variant": TIME, "baseline": TIME,
                   "beside_start": TIME, "start": TIME, "start_name": "plain"}]}]
    variant["gpu"]["sm_mhz"] = 1700.0
    variant["provenance"]["records_sha256"] = "0" * 64
    case = variant["cases"][0]
    case.update(ns=2.0, low_ns=1.0, high_ns=3.0, baseline_ns=4.0, baseline_low_ns=3.5, baseline_high_ns=4.5, error=0.0)
    return manifest


class Rig:
    def __init__(self, schema, library, folder):
        jsonschema.Draft202012Validator.check_schema(schema)
        self.validator = jsonschema.Draft202012Validator(schema)
        self.library = ctypes.CDLL(library)
        self.folder = folder
        self.wrong = 0

    def reader(self, manifest):
        """None: the reader takes the manifest; otherwise why it does not."""
        class Error(ctypes.Structure):
            _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 1500)]
        with open(os.path.join(self.folder, "manifest.json"), "w", encoding="utf-8") as out:
            json.dump(manifest, out)
        opened, error = ctypes.c_void_p(), Error()
        status = self.library.evoke_bundle_open(self.folder.encode(), ctypes.byref(opened), ctypes.byref(error))
        if status == 0:
            self.library.evoke_bundle_close(opened)
            return None
        return error.text.decode()

    def expect(self, what, manifest, taken):
        """`taken` True or False: by both; None: the reader is as strict as the schema at least."""
        problem = next(self.validator.iter_errors(manifest), None)
        why = self.reader(manifest)
        told = (problem.message[:100] if problem else "taken", why or "taken")
        fits = (problem is None and why is None) if taken else (problem is not None and why is not None)
        if taken is None:
            fits = problem is None or why is not None
        if not fits:
            self.wrong += 1
            print(f"{what}: the schema: {told[0]}; the reader: {told[1]}")


def run(schema_path, table, library, folder):
    schema = json.load(open(schema_path, encoding="utf-8"))
    rows = rows_of(table)
    hold_table(schema, rows)
    honest = json.load(open(os.path.join(folder, "manifest.json"), encoding="utf-8"))
    rig = Rig(schema, library, folder)
    rig.expect("the real bundle", honest, True)
    whole, steps = full(honest), stepwise(honest)
    rig.expect("every key", whole, True)
    rig.expect("several launches", steps, True)

    def base(kind, name=""):
        """A manifest to change, which has that key."""
        in_steps = kind in ("step", "loop", "value", "scratch") or (kind == "launch" and name in ("steps", "scratch"))
        return copy.deepcopy(steps if in_steps else whole)

    count = 0
    for kind, name, _, required in rows:
        place = ELSEWHERE.get((kind.lower(), name), PLACES[kind.lower()])
        if name == "signer":
            continue # a bundle that is not signed has none
        for change in ("gone", "other"):
            lie = base(kind.lower(), name)
            there = at(lie, place)
            if change == "gone":
                del there[name]
            else:
                there[name] = WRONG[type(there[name])]
            rig.expect(f"{kind} {name} {change}", lie, False if change == "other" or required == "true" else None)
            count += 1
    for kind, place in PLACES.items():
        lie = base(kind)
        at(lie, place)["stranger"] = 1
        rig.expect(f"{kind} with a stranger", lie, False)
        count += 1
    for kind, name, value in LIES:
        lie = base(kind, name)
        at(lie, PLACES[kind])[name] = value
        rig.expect(f"{kind} {name} {value}", lie, False)
        count += 1
    for kind, names in GONE:
        lie = copy.deepcopy(whole)
        for name in names:
            del at(lie, PLACES[kind])[name]
        rig.expect(f"{kind} without {names}", lie, False)
        count += 1
    for path in ("../x", "/x", "a//b", "a/./b", "a/"):
        lie = copy.deepcopy(whole)
        lie["files"][path] = {"sha256": "0" * 64, "bytes": 1}
        rig.expect(f"the path {path}", lie, False)
        count += 1
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as out:
        json.dump(honest, out)
    print(f"{count} manifests, {rig.wrong} of which schema and reader do not agree on")
    return rig.wrong


if __name__ == "__main__":
    sys.exit(1 if run(*sys.argv[1:]) else 0)
