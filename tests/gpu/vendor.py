#!/usr/bin/env python3
"""Times of the vendor's own kernels for the tasks, by PyTorch: one JSON object on a line.

For each timed case of each task that has a counterpart in VENDOR: median of 20 runs with CUDA
events, the L2 written over before each. Where there is no PyTorch, or no GPU for it, the object says why.
The counterparts do the same work in the libraries' own way (cuDNN, cuBLAS, fused optimizers), with
TF32 off.
"""
import json
import os
import subprocess
import sys

RUNS = 20


def conv2d(torch, shape):
    """Task fft_conv2d: the convolution by whichever algorithm cuDNN finds fastest."""
    x = torch.randn(shape["images"], shape["channels"], shape["height"], shape["width"], device="cuda")
    f = torch.randn(shape["outputs"], shape["channels"], 5, 5, device="cuda")
    torch.backends.cudnn.benchmark = True
    return "cuDNN, torch.nn.functional.conv2d", lambda: torch.nn.functional.conv2d(x, f)


def lstm(torch, shape):
    """Task sd_lstm_fp: product over the kept columns, then the cell."""
    b, h, k = shape["B"], shape["H"], shape["k"]
    x, w = torch.randn(b, k, device="cuda"), torch.randn(4 * h, k, device="cuda")
    g, c = torch.randn(b, 4 * h, device="cuda"), torch.randn(b, h, device="cuda")

    def step():
        i, f, n, o = torch.addmm(g, x, w.t()).chunk(4, 1)
        cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    return "cuBLAS, torch.addmm and the cell's operations; columns gathered beforehand", step


def masked(torch, shape):
    """Task bp_data_masked: the whole product, then the mask."""
    dy = torch.randn(shape["M"], shape["K"], device="cuda")
    w = torch.randn(shape["K"], shape["N"], device="cuda")
    x = torch.randn(shape["M"], shape["N"], device="cuda")
    return "cuBLAS, torch.mm and a mask", lambda: torch.mm(dy, w) * (x > 0)


def adam(torch, shape):
    """Task ar_adam: sum over ranks, fused Adam, copies to every rank."""
    n, ranks = shape["n"], shape["ranks"]
    gradient = torch.randn(ranks, n, device="cuda")
    everywhere = torch.randn(ranks, n, device="cuda")
    parameter = torch.nn.Parameter(torch.randn(n, device="cuda"))
    optimizer = torch.optim.Adam([parameter], fused=True)

    def step():
        parameter.grad = gradient.sum(0)
        optimizer.step()
        everywhere.copy_(parameter.detach().expand(ranks, n))

    return "torch.sum, fused torch.optim.Adam, copy", step


VENDOR = {"fft_conv2d": conv2d, "sd_lstm_fp": lstm, "bp_data_masked": masked, "ar_adam": adam}


def median_ns(torch, work):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(3):
        work()
    times = []
    for _ in range(RUNS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e6)
    return sorted(times)[RUNS // 2]


def timed_cases():
    evoke = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "evoke")
    listed = subprocess.run([evoke if os.path.exists(evoke) else "evoke", "list", "--json"],
                            check=True, capture_output=True, text=True)
    for task in json.loads(listed.stdout)["tasks"]:
        for case in task["cases"]:
            if case["use"] == "time" and task["kernel"] in VENDOR:
                yield task["kernel"], case["case"], case["shape"]


def main():
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        print(json.dumps({"why": "there is no PyTorch", "rows": []}))
        return 0
    if not torch.cuda.is_available():
        print(json.dumps({"why": "PyTorch finds no GPU", "rows": []}))
        return 0
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows, why = [], ""
    for kernel, case, shape in timed_cases():
        try:
            by, work = VENDOR[kernel](torch, shape)
            with torch.no_grad():
                rows.append({"kernel": kernel, "case": case, "by": by, "ns": median_ns(torch, work)})
        except (KeyError, RuntimeError) as problem:
            why = "%s, %s: %s" % (kernel, case, problem)
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0), "rows": rows, "why": why}))
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main())
