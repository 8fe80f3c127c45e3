"""Dtypes, sizes of parts, and sums of exponentials.

Every rule that depends on device or dtype stands here.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

DEAD = float("-inf")  # log-probability of what cannot be
LOGITS_AT_A_TIME = 2**22  # of a matrix that is made in parts: 16 MiB in float32
# logits whose exponentials are held at a time: in a CPU's cache; 256 MiB of a GPU
AT_A_TIME, AT_A_TIME_ON_GPU = 2**18, 2**26
FARTHEST = -64.0  # log-probability from which its logit's sum is read within 4e-6
NARROW = (
    "--sb-bf16, --sb-int8 and --fp16 (half() in Python) each set the dtype of "
    "decoding, and only one of them can be given: leave the others out"
)


@cache
def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of sums, softmax and scores: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def rows_at_a_time(logits: Tensor) -> int:
    """Return the number of rows of (n, V) logits to work on at a time."""
    most = AT_A_TIME if logits.is_cpu else AT_A_TIME_ON_GPU
    return max(1, most // logits.size(1))


def log_sum_exp(logits: Tensor) -> Tensor:
    """Compute log Σ exp of (n, V), (n,), in float32 at least.

    It is not finite where a logit is +inf or NaN, or where all are -inf.
    """
    logits = logits.to(wide(logits.dtype))
    if not logits.is_cpu:
        return logits.logsumexp(-1)
    # a softmax takes half the time of torch's logsumexp there
    first = logits.log_softmax(-1)[:, 0]
    norm, near = logits[:, 0] - first, first > FARTHEST
    return norm if near.all() else torch.where(near, norm, logits.logsumexp(-1))


def attention_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype in which attention is computed and cached.

    It is float32 for bfloat16 on a CPU, which is faster there for few queries, and more
    exact; else that of ``x``.
    """
    narrow = x.is_cpu and x.dtype == torch.bfloat16
    return torch.float32 if narrow else x.dtype


@cache
def mkl_lags() -> bool:
    """Tell whether oneDNN's float32 products are faster on this CPU than torch's own.

    torch multiplies by MKL, which takes 256 bits at a time on processors of other
    makers that have 512; oneDNN, which torch has as well, takes them all.
    """
    return has_both() and capability() == "AVX512" and "GenuineIntel" not in maker()


@cache
def mkl_lags_at_256_bits() -> bool:
    """Tell whether oneDNN is faster here by a copy of a weight in its own order.

    So it is on AMD's processors of 256 bits: for any number of rows where a weight has
    more outputs than inputs, and for few rows otherwise.
    """
    return has_both() and capability() == "AVX2" and "AuthenticAMD" in maker()


def has_both() -> bool:
    """Tell whether torch has MKL and oneDNN."""
    mkl: bool = torch.backends.mkl.is_available()
    return mkl and torch.backends.mkldnn.is_available()


def capability() -> str:
    """Return torch's name of the widest instructions that it uses here."""
    return str(torch.backends.cpu.get_cpu_capability())


def maker() -> str:
    """Return the name that the processor gives its maker."""
    said = Path("/proc/cpuinfo")
    lines = said.read_text().splitlines() if said.exists() else []
    found = [line for line in lines if line.startswith("vendor_id")]
    return found[0] if found else platform.processor()


def by_onednn(x: Tensor) -> bool:
    """Tell whether large products of ``x`` are oneDNN's: float32 on such a CPU."""
    return x.is_cpu and x.dtype == torch.float32 and mkl_lags()


def narrow_products(x: Tensor) -> bool:
    """Tell whether torch.autocast computes linear layers on a CPU, where ``x`` is."""
    return x.is_cpu and torch.is_autocast_enabled("cpu")


def leave_cudnn_out() -> None:
    """Compute a GPU's attention in half precision by torch's other kernels.

    From torch 2.11 on cuDNN's come first on Hopper and Blackwell.  They build a plan
    for every shape that they have not met: 0.44 s forward and 0.55 s backward of a
    model larger than ours in modelscope/FunASR#3704.  Here hardly two batches or steps
    of a search have the same shape.  And of some lengths, with a mask and logits that
    are all far below 0, their gradients are NaN (pytorch#196678).  This holds for the
    whole process.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def additive(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """Return -inf where hidden, else 0: to be added to attention logits."""
    zeros = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
    return zeros.masked_fill_(hidden, DEAD)
