"""Progress bars, on terminals alone: a log that a command is redirected to has none."""

import functools

from tqdm import tqdm

write = tqdm.write  # a line between bars
progress = functools.partial(tqdm, disable=None)  # None: unless it is a terminal
