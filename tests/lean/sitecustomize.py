"""Read by Python at its start, where the tests' processes find it on their path.

fairseq imports scikit-learn and scipy.stats for tasks that are not ours: a quarter of
what every process does before its own work, 1.4 s of CPU time, and the tests start
hundreds.  Here they are modules whose functions say that they are not there.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

UNUSED = {
    "sklearn": ["metrics"],
    "sklearn.metrics": ["f1_score", "matthews_corrcoef", "roc_curve"],
    "scipy.stats": ["pearsonr", "spearmanr"],
}


def absent(*words, **options):
    raise NotImplementedError("scikit-learn and scipy.stats are left out of the tests")


for name, members in UNUSED.items():
    module = sys.modules.setdefault(name, ModuleType(name))
    module.__spec__ = ModuleSpec(name, None)  # torch's compiler asks for it
    for member in members:
        setattr(module, member, absent)
