"""A second device, pretended: tensors on it compute, but elsewhere than on the CPU.

A tensor on it is a wrapper of one on the CPU, so every program can be run to its end
and its results compared.  What a GPU refuses, it refuses: two tensors of which one lies
on the CPU, single numbers apart.  Where a program waits for a GPU, it notes so.
"""

import contextlib
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import pytest
import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

NAME = "pretended"
SETUP = "_setup_privateuseone_for_python_backend"  # torch 2.9 and later
BETWEEN = ("_to_copy", "copy_", "_copy_from")  # where the two devices may meet
PACKED = ("_pack_padded_sequence", "_pad_packed_sequence")  # sizes lie on the CPU
NUMBERS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "unique")
ONCE = 36  # questions and copies of a batch: fairseq's encoder, symbols, the answers


class OnDevice(torch.Tensor):
    """A tensor of the pretended device.

    Attributes:
        inner: what it holds, on the CPU.
    """

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        made.inner = inner
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})

    def tolist(self):
        """As a tensor's own, which a subclass may not have."""
        Device.synchronisations.append("tolist")
        return self.inner.tolist()

    def __format__(self, how):
        """Likewise."""
        return format(self.cpu(), how)


def lie_on_the_cpu(answers):
    """Whether all of a search's answers, of any device, lie where they are read."""
    values = [x for own in answers for answer in own for x in answer.values()]
    return not any(isinstance(x, OnDevice) for x in values) and len(values) > 0


class Device(TorchDispatchMode):
    """While it is entered, tensors can be made on the pretended device.

    Attributes:
        synchronisations: operators for which a program waited, in order, since a device
            was made last.
    """

    synchronisations: ClassVar[list[str]] = []

    def __init__(self):
        super().__init__()
        Device.synchronisations = []
        # which leaves no way to a tensor that is written in Python
        self.mode = mock.patch.object(
            torch._C, "_InferenceMode", lambda _: torch.no_grad()
        )

    def __enter__(self):
        self.mode.start()
        return super().__enter__()

    def __exit__(self, *raised):
        super().__exit__(*raised)
        self.mode.stop()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


def empty(size, stride, dtype=None, **_):
    """``torch.empty_strided`` on the device, as ``torch.tensor`` calls it."""
    return OnDevice(torch.empty_strided(size, stride, dtype=dtype))


def copied(source, target, _=False):
    """A copy between the devices, as ``torch.tensor`` makes it."""
    Device.synchronisations.append("copy")
    inner = [x.inner if isinstance(x, OnDevice) else x for x in (source, target)]
    inner[1].copy_(inner[0])
    return target


def run(function, args, kwargs):
    """An operator on what the tensors hold, with a device's checks."""
    name = function.overloadpacket.__name__
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    here = [x for x in tensors if isinstance(x, OnDevice)]
    if here and name not in BETWEEN + PACKED:
        for x in tensors:
            if not isinstance(x, OnDevice) and x.dim():
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but {name} got "
                    f"one of shape {tuple(x.shape)} on the CPU"
                )
    wanted = kwargs.get("device")
    there = bool(here) if wanted is None else torch.device(wanted).type == NAME
    if name == "copy_":
        there = isinstance(args[0], OnDevice)
    if synchronises(name, tensors, here, there):
        Device.synchronisations.append(name)
    if wanted is not None:
        kwargs = {**kwargs, "device": "cpu"}
    inner_args, inner_kwargs = tree_map_only(
        OnDevice, lambda x: x.inner, (args, kwargs)
    )
    found = KERNELS.get(name, function)(*inner_args, **inner_kwargs)
    if not there:
        return found
    if name == "_pack_padded_sequence":
        return OnDevice(found[0]), found[1]
    known = {id(x.inner): x for x in here}

    def wrapped(x):
        return known[id(x)] if id(x) in known else OnDevice(x)

    return tree_map_only(torch.Tensor, wrapped, found)


def gru_cell(given, recurrent, hidden, given_bias=0, recurrent_bias=0):
    """A step of a GRU from both products, and what its gradient needs."""
    x, h = (given + given_bias).chunk(3, 1), (recurrent + recurrent_bias).chunk(3, 1)
    reset, keep = ((a + b).sigmoid() for a, b in zip(x[:2], h[:2]))
    new = (x[2] + reset * h[2]).tanh()
    kept = torch.cat([reset, keep, new, hidden, h[2]], 1)
    return new + keep * (hidden - new), kept


def gru_cell_backward(gradient, kept, has_bias):
    """Of both products, of the hidden state, and of both biases."""
    reset, keep, new, hidden, h = kept.chunk(5, 1)
    of_new = gradient * (1 - keep) * (1 - new**2)
    of_reset = of_new * h * reset * (1 - reset)
    of_keep = gradient * (hidden - new) * keep * (1 - keep)
    given = torch.cat([of_reset, of_keep, of_new], 1)
    recurrent = torch.cat([of_reset, of_keep, of_new * reset], 1)
    biases = (given.sum(0), recurrent.sum(0)) if has_bias else (None, None)
    return given, recurrent, gradient * keep, *biases


KERNELS = {  # of which the CPU has none
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}


def synchronises(name, tensors, here, there):
    """Tell whether an operator synchronises host and device.

    It does for values, for sizes that depend on values, and for a copy between both.
    """
    if name in BETWEEN:
        return bool(tensors) and there != (len(here) == len(tensors))
    masks = name == "index" and any(x.dtype == torch.bool for x in here[1:])
    return bool(here) and (masks or name.startswith(NUMBERS))


def moved(x):
    """A tensor, or a nest of them, on the pretended device."""
    return tree_map_only(torch.Tensor, lambda y: OnDevice(y.detach()), x)


def move(model):
    """Put a model there, in place; tied parameters stay tied."""
    known = {}

    def place(x):
        there = moved(x)
        if isinstance(x, torch.nn.Parameter):
            there = torch.nn.Parameter(there, x.requires_grad)
        return known.setdefault(id(x), there)

    for module in model.modules():
        for table in (module._parameters, module._buffers, vars(module)):
            for name, x in list(table.items()):
                if isinstance(x, torch.Tensor) and not isinstance(x, OnDevice):
                    table[name] = known[id(x)] if id(x) in known else place(x)
    return model


AVAILABLE = hasattr(backend_registration, SETUP)
needed = pytest.mark.skipif(
    not AVAILABLE, reason="this torch has no devices written in Python"
)
if AVAILABLE:  # before any backward pass counts the devices

    class Hidden:
        """Nobody takes this device because it is there, to pin memory for it, say."""

        def is_available(self):
            return False

    class Module(Hidden, backend_registration._DummyBackendModule):
        def get_amp_supported_dtype(self):
            return [torch.float16, torch.bfloat16]

    class Hook(Hidden, backend_registration._DummyPrivateUse1Hook):
        pass

    getattr(backend_registration, SETUP)(NAME, Module(), Hook())
    LIBRARY = torch.library.Library("aten", "IMPL")
    LIBRARY.impl("empty_strided", empty, "PrivateUse1")
    LIBRARY.impl("_copy_from", copied, "PrivateUse1")


class Torch:
    """What fairseq's trainer calls torch, where the GPU is this device."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def device(self, name: str) -> torch.device:
        return torch.device(NAME, 0) if name == "cuda" else torch.device(name)


def to_the_gpu(x, *_, **__):
    """``x.cuda()`` of a tensor or a module."""
    return x.to(torch.device(NAME, 0))


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


GPU = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: torch.device(NAME, 0),
    "get_device_capability": lambda *_: (9, 0),
    "get_rng_state": lambda *_: torch.zeros(1, dtype=torch.uint8),
    "max_memory_allocated": lambda: 0,
    "memory_summary": lambda **_: "",
    **dict.fromkeys(
        (
            "set_device",
            "set_rng_state",
            "manual_seed",
            "empty_cache",
            "reset_peak_memory_stats",
        ),
        nothing,
    ),
}


@contextlib.contextmanager
def gpu():
    """fairseq's commands, and the package's, take the device for their GPU.

    Yields:
        Device
    """
    environment = mock.Mock(return_value=SimpleNamespace(total_memory_in_GB=1.0))
    environment.pretty_print_cuda_env_list = nothing
    with contextlib.ExitStack() as stack:
        for name, value in GPU.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        for kind in torch.Tensor, torch.nn.Module:
            stack.enter_context(mock.patch.object(kind, "cuda", to_the_gpu))
        stack.enter_context(mock.patch("fairseq.trainer.torch", Torch()))
        stack.enter_context(mock.patch("fairseq.utils.CudaEnvironment", environment))
        yield stack.enter_context(Device())


def on_cpu(x):
    """Return a tensor as it lies on the CPU."""
    return x.inner if isinstance(x, OnDevice) else x
