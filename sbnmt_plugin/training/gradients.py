"""What is said where a gradient is no number."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nan_is_named() -> Iterator[None]:
    """What fairseq wants to say of a gradient that is no number.

    It looks for the module that gave it, by hooks that torch breaks off (StopIteration)
    where a module, as every encoder does, gives a dict without tensors.

    Raises:
        FloatingPointError: in place of that.
    """
    try:
        yield
    except StopIteration as error:
        raise FloatingPointError(
            "the gradients of a batch must be numbers, but some are NaN or infinite: "
            "lower --lr or --clip-norm, or look for the batch; nothing was written but "
            "crash.pt, which is to be looked at"
        ) from error
