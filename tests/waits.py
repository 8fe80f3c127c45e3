"""Counts what a program on a GPU would wait for, and the operations it is made of."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Waits(TorchDispatchMode):
    """Notes the operators for which a program waits for its device, to go on with
    numbers, or with tensors whose size depends on numbers, or to send it host data.

    Attributes:
        found: their names, in order.
        operations: of all kinds, views included.
    """

    NAMES = (
        *("_local_scalar_dense", "nonzero", "masked_select", "equal", "unique"),
        "lift_fresh",  # a list, or a number, that becomes a tensor
    )

    def __init__(self):
        super().__init__()
        self.found = []
        self.operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operations += 1
        name = function.overloadpacket.__name__
        by_mask = name == "index" and any(
            index is not None and index.dtype in (torch.bool, torch.uint8)
            for index in args[1]
        )
        if by_mask or name.startswith(self.NAMES):
            self.found.append(name)
        return function(*args, **(kwargs or {}))
