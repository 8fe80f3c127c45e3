"""Python without torch and what needs it, where this folder is in ``PYTHONPATH``."""

import sys
from importlib.machinery import PathFinder

MISSING = "torch", "fairseq", "hydra", "omegaconf"


class Without(PathFinder):
    """Find what PathFinder finds, but none of these."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            return None
        return super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
