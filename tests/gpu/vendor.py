#!/usr/bin/env python3
"""Times of the vendor's own kernels for the tasks, by PyTorch.

vendor.py [--evoke BINARY] [--rows FILE]

For each timed case of each task that has a counterpart in VENDOR: the median of RUNS runs between
CUDA events, the L2 written over before each. Prints one JSON object on a line with all rows; FILE
gets each row as soon as it is known. A row that fails says why, and the next one runs. SIGTERM ends
the run: what there is is printed, with "stopped": true. Where there is no PyTorch, or no GPU for it,
the object says why. Exit codes: 0 all rows, 1 some failed, 3 stopped.

The counterparts do the same work in the libraries' own way (cuDNN, cuBLAS, fused optimizers), with
TF32 off. The host must not be what is timed, and "how" of a row says what keeps it out:
  graph  the launches are captured once as a CUDA graph, and one launch replays them
  sleep  they can't be captured; a kernel that waits holds the GPU while the host queues them (it
         stands before a graph, too)
  eager  neither was possible: the host's own time may be in the figure
"""
import json
import os
import signal
import subprocess
import sys

RUNS = 20
WARM_UPS = 3
FLUSH_BYTES = 256 << 20
SLEEP_CYCLES = 4_000_000  # 2 ms at 2 GHz: a hundred times what a step's launches take the host


class Stopped(BaseException):
    """SIGTERM came; no Exception, so that no row takes it for its own failure."""


class Work:
    """A step of the vendor's kernels: what it calls, its operands by name, and the call."""

    def __init__(self, by, operands, step):
        self.by, self.operands, self.step = by, operands, step


def conv2d(torch, shape):
    """Task fft_conv2d: the convolution by whichever algorithm cuDNN finds fastest."""
    x = torch.randn(shape["images"], shape["channels"], shape["height"], shape["width"], device="cuda")
    f = torch.randn(shape["outputs"], shape["channels"], 5, 5, device="cuda")
    torch.backends.cudnn.benchmark = True
    return Work("cuDNN, torch.nn.functional.conv2d", {"X": x, "F": f},
                lambda: torch.nn.functional.conv2d(x, f))


def lstm(torch, shape):
    """Task sd_lstm_fp: product over the kept columns, then the cell."""
    b, h, k = shape["B"], shape["H"], shape["k"]
    x, w = torch.randn(b, k, device="cuda"), torch.randn(4 * h, k, device="cuda")
    g, c = torch.randn(b, 4 * h, device="cuda"), torch.randn(b, h, device="cuda")

    def step():
        i, f, n, o = torch.addmm(g, x, w.t(), alpha=h / k).chunk(4, 1)
        cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    return Work("cuBLAS, torch.addmm and the cell's operations; columns gathered beforehand",
                {"X": x, "W": w, "G": g, "C": c}, step)


def masked(torch, shape):
    """Task bp_data_masked: the whole product, then the mask. The lowered convolution has a row a
    pixel, a column an input channel, and sums over output channels and filter elements."""
    rows, columns = shape["images"] * shape["side"] * shape["side"], shape["cin"]
    depth = shape["cout"] * shape["taps"]
    dy, w = torch.randn(rows, depth, device="cuda"), torch.randn(depth, columns, device="cuda")
    x = torch.rand(rows, columns, device="cuda") - (1 - shape["density"])
    return Work("cuBLAS, torch.mm and a mask", {"dY": dy, "W": w, "X": x},
                lambda: torch.mm(dy, w) * (x > 0))


def adam(torch, shape):
    """Task ar_adam: sum over ranks, fused Adam, copies to every rank."""
    n, ranks = shape["n"], shape["ranks"]
    gradient = torch.randn(ranks, n, device="cuda")
    everywhere = torch.randn(ranks, n, device="cuda")
    parameter = torch.nn.Parameter(torch.randn(n, device="cuda"))
    optimizer = torch.optim.Adam([parameter], fused=True, capturable=True)

    def step():
        parameter.grad = gradient.sum(0)
        optimizer.step()
        everywhere.copy_(parameter.detach().expand(ranks, n))

    return Work("torch.sum, fused torch.optim.Adam, copy",
                {"gradient": gradient, "parameter": everywhere}, step)


VENDOR = {"fft_conv2d": conv2d, "sd_lstm_fp": lstm, "bp_data_masked": masked, "ar_adam": adam}


def warm_up(torch, step):
    """On a stream of its own, as a capture asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def captured(torch, step):
    """What replays the step as one graph; None where it cannot be captured."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        graph.replay()
        torch.cuda.synchronize()
        return graph.replay
    except (AttributeError, RuntimeError):
        return None


def median_ns(torch, step):
    """The median in nanoseconds, and how the host was kept out."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    warm_up(torch, step)
    replay, sleep = captured(torch, step), getattr(torch.cuda, "_sleep", None)
    times = []
    for _ in range(RUNS):
        flush.zero_()
        if sleep is not None:
            sleep(SLEEP_CYCLES)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        (replay or step)()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e6)
    return sorted(times)[RUNS // 2], "graph" if replay else "sleep" if sleep else "eager"


def timed_cases(evoke):
    listed = subprocess.run([evoke, "list", "--json"], check=True, capture_output=True, text=True)
    for task in json.loads(listed.stdout)["tasks"]:
        for case in task["cases"]:
            if case["use"] == "time" and task["kernel"] in VENDOR:
                yield task["kernel"], case["case"], case["shape"]


def time_case(torch, kernel, case, shape):
    """The row of one case; a failure of PyTorch's, or a shape that lacks a name, is its reason."""
    row = {"kernel": kernel, "case": case}
    try:
        work = VENDOR[kernel](torch, shape)
        row["by"] = work.by
        row["operands"] = {name: list(value.shape) for name, value in work.operands.items()}
        with torch.no_grad():
            row["ns"], row["how"] = median_ns(torch, work.step)
    except KeyError as problem:
        row["why"] = "the shape has no %s" % problem
    except Exception as problem:  # pylint: disable=broad-except
        row["why"] = "%s: %s" % (type(problem).__name__, problem)
    return row


def time_all(torch, evoke, out, result):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    result.update(torch=torch.__version__, gpu=torch.cuda.get_device_name(0))
    for kernel, case, shape in timed_cases(evoke):
        row = time_case(torch, kernel, case, shape)
        result["rows"].append(row)
        out.write(json.dumps(row) + "\n")
        out.flush()


def main(words):
    options = {"--evoke": os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "evoke"), "--rows": None}
    for name, value in zip(words[::2], words[1::2]):
        options[name] = value
    if len(words) % 2 or len(options) != 2:
        sys.exit(__doc__)

    def stop(_number, _frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # timeout(1) sends two
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    result = {"rows": [], "why": ""}
    with open(options["--rows"] or os.devnull, "w", encoding="utf-8") as out:
        try:
            import torch  # pylint: disable=import-outside-toplevel
            if torch.cuda.is_available():
                time_all(torch, options["--evoke"], out, result)
            else:
                result["why"] = "PyTorch finds no GPU"
        except ImportError:
            result["why"] = "there is no PyTorch"
        except Stopped:
            result["stopped"] = True
    failed = ["%s, %s: %s" % (r["kernel"], r["case"], r["why"]) for r in result["rows"] if "why" in r]
    result["why"] = result["why"] or "; ".join(failed)
    print(json.dumps(result))
    return 3 if "stopped" in result else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
