"""Every architecture of fairseq that the task takes: trained, resumed and decoded."""

from argparse import Namespace

import pytest
from commands import (
    ALL,
    PLUGIN,
    UPDATES,
    binarise,
    load,
    run_generate,
    write_texts,
)
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq_cli import train

from sbnmt_plugin.given_options import check_architecture

FAIRSEQS = {n: x for n, x in ARCH_MODEL_REGISTRY.items() if "fairseq" in x.__module__}


def supported(name):
    try:
        check_architecture(Namespace(arch=name))
    except ValueError:
        return False
    return True


TAKEN = [name for name in FAIRSEQS if supported(name)]
SMALL = {f"--{side}-layers": 1 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-embed-dim": 16 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-ffn-embed-dim": 16 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-attention-heads": 2 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-hidden-size": 16 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-conv-dim": 16 for side in ("encoder", "decoder")}
SMALL |= {f"--{side}-kernel-size-list": "[3]" for side in ("encoder", "decoder")}
SMALL |= {"--decoder-out-embed-dim": 16}


def train_until(data, save, name, update, *words):
    """Train to an update, with the sizes that the architecture has."""
    command = [str(data), "--save-dir", str(save), *PLUGIN, *ALL, *UPDATES]
    command += ["--arch", name, "--max-update", str(update), *words]
    command += [str(word) for pair in SMALL.items() for word in pair]
    parser = options.get_training_parser()
    args, _ = options.parse_args_and_arch(parser, command, parse_known=True)
    train.main(convert_namespace_to_omegaconf(args))
    return save / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A data folder of a few sentences, with a joined dictionary."""
    folder = tmp_path_factory.mktemp("few")
    sizes = {"train": 12, "valid": 3, "test": 2}
    texts = write_texts(folder / "texts", sizes, opposite=False)
    return binarise(texts, folder / "bin", "--joined-dictionary")


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_trained_is_resumed_and_decoded(few, tmp_path, name):
    way = ["--sb-direction", "r2l"]
    words = [*way, "--no-epoch-checkpoints", "--disable-validation"]
    for update in 1, 2:
        path = train_until(few, tmp_path, name, update, *words)
        assert load(path)["optimizer_history"][-1]["num_updates"] == update
    found = run_generate(few, path, *way, "--beam", 1, "--max-len-b", 1)
    assert "H-0\t" in found


def test_fairseqs_translation_models_are_taken():
    for name in "transformer", "lightconv", "lstm", "transformer_align", "bart_base":
        assert name in TAKEN


def test_any_other_is_refused_and_no_checkpoint_gets_round_it():
    for name in {*FAIRSEQS} - {*TAKEN}:
        for settings in {"arch": name}, {"_name": name, "arch": "lstm"}, {"arch": "?"}:
            with pytest.raises(ValueError, match=r"--arch .* is not supported"):
                check_architecture(Namespace(**settings))


@pytest.mark.parametrize(
    "name", ["fconv", "roberta_enc_dec", "s2t_transformer", "transformer_lm"]
)
def test_a_training_of_another_ends_before_the_work(few, tmp_path, name):
    """Also where fairseq cannot even make the settings, as of language models."""
    with pytest.raises(ValueError, match=f"^--arch {name} is not supported by sb_tran"):
        train_until(few, tmp_path, name, 1, "--sb-direction", "r2l")
