"""A torch for the test of vendor.py: shapes without contents, and a clock without a GPU.

Each launch takes the host HOST_NS and the GPU LAUNCH_NS, and begins when both are ready for it; a
graph is one launch for the host. Operations refuse operands whose shapes do not fit, as torch does.
FAKE_TORCH may hold: no-gpu, no-graph, no-sleep, no-conv2d (fails), stop-after-N (the process gets
SIGTERM when it has synchronised N times).
"""
import os
import signal
import types

HOST_NS, LAUNCH_NS, FLUSH_NS = 15000, 1000, 90000

__version__ = "0.fake"
uint8 = "uint8"
_asked = os.environ.get("FAKE_TORCH", "").split()
_stop_after = [int(word.rsplit("-", 1)[1]) for word in _asked if word.startswith("stop-after-")]


class _Clock:
    host = gpu = 0
    capturing = None  # launches of the graph that is being captured
    synchronised = 0


def _launch(nanoseconds=LAUNCH_NS):
    if _Clock.capturing is not None:
        _Clock.capturing.append(nanoseconds)
        return
    _Clock.host += HOST_NS
    _Clock.gpu = max(_Clock.gpu, _Clock.host) + nanoseconds


class Tensor:
    def __init__(self, *shape):
        self.shape = shape

    def _same(self, other, *shape):
        if isinstance(other, Tensor) and other.shape != self.shape:
            raise RuntimeError("the shapes %s and %s do not fit" % (self.shape, other.shape))
        _launch()
        return Tensor(*(shape or self.shape))

    __mul__ = __add__ = __gt__ = __sub__ = copy_ = _same

    def sum(self, dimension):
        return self._same(None, *(n for i, n in enumerate(self.shape) if i != dimension))

    def zero_(self):
        _launch(FLUSH_NS)

    def t(self):
        return Tensor(*reversed(self.shape))

    def chunk(self, count, dimension):
        shape = list(self.shape)
        shape[dimension] //= count
        return [Tensor(*shape) for _ in range(count)]

    def expand(self, *shape):
        if shape[-len(self.shape):] != self.shape:
            raise RuntimeError("%s is no expansion of %s" % (shape, self.shape))
        return Tensor(*shape)

    def detach(self):
        return self


def randn(*shape, device):
    assert device == "cuda" and all(isinstance(n, int) and n > 0 for n in shape), shape
    return Tensor(*shape)


rand = randn


def empty(size, dtype, device):
    assert dtype == uint8 and device == "cuda"
    return Tensor(size)


def mm(a, b):
    if a.shape[1] != b.shape[0]:
        raise RuntimeError("%s times %s" % (a.shape, b.shape))
    _launch()
    return Tensor(a.shape[0], b.shape[1])


def addmm(c, a, b, alpha=1):
    assert alpha >= 1
    if (a.shape[0], b.shape[1]) != c.shape or a.shape[1] != b.shape[0]:
        raise RuntimeError("%s plus %s times %s" % (c.shape, a.shape, b.shape))
    _launch()
    return Tensor(*c.shape)


def _one(x):
    _launch()
    return Tensor(*x.shape)


sigmoid = tanh = _one


def _conv2d(x, f):
    if "no-conv2d" in _asked or x.shape[1] != f.shape[1]:
        raise RuntimeError("no convolution of %s with %s" % (x.shape, f.shape))
    _launch()
    return Tensor(x.shape[0], f.shape[0], x.shape[2] - f.shape[2] + 1, x.shape[3] - f.shape[3] + 1)


nn = types.SimpleNamespace(functional=types.SimpleNamespace(conv2d=_conv2d),
                           Parameter=lambda value: value)


class _Adam:
    def __init__(self, parameters, fused, capturable):
        assert fused and capturable
        self.parameters = parameters

    def step(self):
        for parameter in self.parameters:
            parameter._same(parameter.grad)


optim = types.SimpleNamespace(Adam=_Adam)


class _Nothing:
    def __init__(self, *_words):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_words):
        return False


no_grad = _Nothing


class _Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        self.at = _Clock.gpu = max(_Clock.gpu, _Clock.host)

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e-6


class _Graph:
    launches = ()

    def replay(self):
        _launch(sum(self.launches))


class _Capture:
    def __init__(self, graph):
        if "no-graph" in _asked:
            raise RuntimeError("this can't be captured")
        self.graph = graph

    def __enter__(self):
        _Clock.capturing = []

    def __exit__(self, *_words):
        self.graph.launches, _Clock.capturing = _Clock.capturing, None
        return False


class _Stream:
    def wait_stream(self, _other):
        pass


def _synchronize():
    _Clock.host = max(_Clock.host, _Clock.gpu)
    _Clock.synchronised += 1
    if [_Clock.synchronised] == _stop_after:
        os.kill(os.getpid(), signal.SIGTERM)


def _sleep(cycles):
    _launch(cycles / 2)


cuda = types.SimpleNamespace(
    is_available=lambda: "no-gpu" not in _asked, get_device_name=lambda _index: "no GPU at all",
    Stream=_Stream, current_stream=_Stream, stream=_Nothing, synchronize=_synchronize,
    CUDAGraph=_Graph, graph=_Capture, Event=_Event)
if "no-sleep" not in _asked:
    cuda._sleep = _sleep
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=False, allow_tf32=True),
                                 cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)))
