import logging
import os
import runpy
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes on two cores
ROOT = Path(__file__).resolve().parent.parent
LEAN = ROOT / "tests" / "lean"
paths = [str(LEAN), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of the processes that tests start
runpy.run_path(str(LEAN / "sitecustomize.py"))  # in this one
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

import sbnmt_plugin  # noqa: E402, F401  (before fairseq, whose noise it leaves out)

torch.set_num_threads(1)
# seconds after which torch looks again whether a loader's process has ended
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.2

import commands  # noqa: E402
import pretended  # noqa: E402, F401  (a device must be there before the first backward)
import pytest  # noqa: E402
import quick_hydra  # noqa: E402, F401
import slow  # noqa: E402

LOGGERS = {x: x.level for x in map(logging.getLogger, (None, "fairseq"))}


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark the slow tests; the slowest files come first, and end no run alone."""
    for item in items:
        if item.originalname in slow.TESTS or slow.FIXTURES & {*item.fixturenames}:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.stem not in slow.FIRST)


@pytest.fixture(autouse=True)
def loggers_as_they_were():
    """What a step of ours leaves out in its process is left out in no other test."""
    yield
    logging.disable(logging.NOTSET)
    for logger, level in LOGGERS.items():
        logger.setLevel(level)


@pytest.fixture
def float64_fairseq(monkeypatch):
    """fairseq casts its softmaxes to float32; keep float64."""
    monkeypatch.setattr(
        "fairseq.utils.softmax", lambda x, dim, onnx_trace=False: x.softmax(dim)
    )
    monkeypatch.setattr(
        "fairseq.utils.log_softmax", lambda x, dim, onnx_trace=False: x.log_softmax(dim)
    )


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A data folder of triples; validation and test sets of gold text."""
    folder = tmp_path_factory.mktemp("data")
    texts = commands.write_texts(folder / "texts", commands.SIZES)
    return commands.binarise(texts, folder / "bin")


@pytest.fixture(scope="session")
def gold_data(tmp_path_factory):
    """What fairseq-preprocess alone writes, with a joined dictionary."""
    folder = tmp_path_factory.mktemp("gold")
    texts = commands.write_texts(folder / "texts", commands.SIZES, opposite=False)
    return commands.binarise(texts, folder / "bin", "--joined-dictionary")


@pytest.fixture(scope="session")
def trained(data, tmp_path_factory):
    """An SB-NMT model that has learned something."""
    save = tmp_path_factory.mktemp("sb")
    return commands.run_train(
        data, save, *commands.SB, "--max-epoch", 30, "--no-epoch-checkpoints"
    )


@pytest.fixture(scope="session")
def teacher(data, tmp_path_factory):
    """An R2L teacher."""
    save = tmp_path_factory.mktemp("r2l")
    words = ["--arch", "transformer_tiny", "--sb-direction", "r2l"]
    return commands.run_train(
        data, save, *words, "--max-epoch", 30, "--no-epoch-checkpoints"
    )
