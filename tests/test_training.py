"""Loss, gradients, resuming, several processes, initialisation, safe checkpoints."""

import math
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from batches import make_criterion, make_sample
from commands import ABD, ALL, PLUGIN, ROOT, SB, TINY, load, run_generate, run_train
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    label_smoothed_nll_loss,
)
from fairseq.data import LanguagePairDataset, ListDataset
from fairseq.distributed import ModuleProxyWrapper
from helpers import (
    dictionary,
    fake_task,
    live_of,
    logits,
    rnn_model,
    sb_model,
    source,
    streams,
    transformer,
)
from pretended import Device, move, moved

from sbnmt_plugin.families.sb.initialisation import adopt_transformer
from sbnmt_plugin.layout import L2R, R2L, opposite
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.training import criterion
from sbnmt_plugin.training.criterion import (
    SBLabelSmoothedCrossEntropy,
    live_rows_alone,
    smoothed_loss,
)
from sbnmt_plugin.training.dataset import SBLanguagePairDataset, with_stream_labels
from sbnmt_plugin.training.train_step import bare

FAMILIES = pytest.mark.parametrize("family", [SB, ABD], ids=["sb", "abd"])


def slow_loss(model, sample, epsilon):
    """Equation 14 with smoothing, label by label."""
    output, _ = model(**sample["net_input"])
    sums = {"loss": [0.0, 0.0], "nll_loss": [0.0, 0.0], "labels": [0, 0]}
    pad = model.decoder.dictionary.pad()
    for row, labels in enumerate(sample["stream_target"].tolist()):
        for i, label in enumerate(labels):
            if label == pad:
                continue
            lprobs = output[row, i].log_softmax(-1)
            eps = epsilon / (len(lprobs) - 1)
            smooth = -float(lprobs.sum())
            nll = -float(lprobs[label])
            sums["loss"][row % 2] += (1 - epsilon - eps) * nll + eps * smooth
            sums["nll_loss"][row % 2] += nll
            sums["labels"][row % 2] += 1
    return sums


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_loss_is_the_sum_over_both_directions(epsilon):
    model = sb_model(sb_lambda=0.7)
    sample = make_sample(model)
    loss, size, log = make_criterion(epsilon)(model, with_stream_labels(sample))
    expected = slow_loss(model, sample, epsilon)
    assert float(loss) == pytest.approx(sum(expected["loss"]), abs=1e-10)
    assert size == sample["ntokens"] == sum(expected["labels"]) == 24
    for name, values in expected.items():
        for direction, value in zip(("l2r", "r2l"), values):
            assert float(log[f"{name}_{direction}"]) == pytest.approx(value, abs=1e-9)
    assert log["labels_l2r"] + log["labels_r2l"] == log["total"] == 24
    assert log["n_correct_l2r"] + log["n_correct_r2l"] == log["n_correct"]


WORD = 12  # an ordinary one


def batch_with(symbol):
    """A collated batch whose texts hold a symbol: inside, at the start, at the end."""
    words = dictionary()
    end = words.eos()
    texts = {
        "source": [[5, 6, 7], [8, 4], [9, 10, 11]],
        "l2r": [[5, symbol, 6, 7], [4, 8, 9], [symbol, symbol, 10]],
        "r2l": [[5, 6], [7, 4, 8, symbol], [9, 10, symbol, 11]],
    }
    rows = {
        name: ListDataset([torch.tensor([*text, end]) for text in part])
        for name, part in texts.items()
    }
    sizes = {name: [len(row) for row in part] for name, part in rows.items()}
    pairs = LanguagePairDataset(
        *(rows["source"], sizes["source"], words),
        *(rows["l2r"], sizes["l2r"], words),
        shuffle=False,
    )
    opposite = ListDataset(rows["r2l"].dataset, np.array(sizes["r2l"]))
    starts = tuple(words.index(tag) for tag in TAGS)
    dataset = SBLanguagePairDataset(pairs, opposite, starts)
    return dataset.collater([dataset[i] for i in range(3)])


def assert_a_symbol_is_a_word(symbol, spoil=lambda sample: sample):
    """Whose rows are another word's, so that both mean the same: the loss is that of
    the text with the other word, label by label, and that is what the formula says.

    Without positions, which fairseq counts from the symbols that are no padding.
    """
    model = sb_model(sb_lambda=0.7, no_token_positional_embeddings=True)
    decoder = model.decoder
    with torch.no_grad():
        for matrix in decoder.embed_tokens.weight, decoder.output_projection.weight:
            matrix[symbol] = matrix[WORD]
    losses = []
    for token in symbol, WORD:
        sample = spoil(batch_with(token))
        assert sample["ntokens"] == 5 + 3 + 4 + 5 + 4 + 5
        criterion_ = make_criterion()
        loss, _, log = criterion_(model, with_stream_labels(sample), reduce=False)
        losses.append((loss, log["nll_loss"]))
    (ours, nll), (others, expected) = losses
    torch.testing.assert_close(ours, others, rtol=0, atol=1e-10)
    assert float(nll) == pytest.approx(float(expected), abs=1e-10)
    slow = slow_loss(model, batch_with(WORD), 0.1)
    assert float(ours.sum()) == pytest.approx(sum(slow["loss"]), abs=1e-10)
    assert float(nll) == pytest.approx(sum(slow["nll_loss"]), abs=1e-10)


@pytest.mark.parametrize("symbol", ["<s>", "<pad>", "</s>", "<unk>"])
def test_a_literal_symbol_in_a_text_moves_no_label(symbol):
    """Binarised by other means, as this plugin's refuse it."""
    assert_a_symbol_is_a_word(dictionary().index(symbol))


def test_the_check_of_literal_symbols_can_fail():
    """Padding told by its symbol, as it was, instead of by where a text ends."""

    def by_symbol(sample):
        prev = sample["net_input"]["prev_output_tokens"]
        return {**sample, "live": live_of(prev)}

    with pytest.raises((AssertionError, RuntimeError)):
        assert_a_symbol_is_a_word(dictionary().pad(), by_symbol)


def waits_of_an_update(kind, model, sample, accuracy):
    from fairseq.logging import metrics

    task = fake_task()
    task.directions = (L2R, R2L)
    criterion_ = kind(task, False, 0.1, 0, accuracy)
    with Device() as device, metrics.aggregate(new_root=True):
        loss, _, log = criterion_(move(model.train()), moved(sample))
        loss.backward()
        criterion_.reduce_metrics([log])
    return device.waits


def assert_waits_no_more_than_fairseqs(accuracy):
    model, plain = sb_model(sb_lambda=0.7), transformer()
    sample = make_sample(model)
    prev = streams(plain)[::2].contiguous()
    gold = {
        "net_input": {**source(plain), "prev_output_tokens": prev},
        "target": sample["target"].contiguous(),
        "ntokens": 12,
    }
    ours = waits_of_an_update(
        SBLabelSmoothedCrossEntropy, model, with_stream_labels(sample), accuracy
    )
    kind = LabelSmoothedCrossEntropyCriterion
    theirs = waits_of_an_update(kind, plain, gold, accuracy)
    assert len(ours) <= len(theirs), (ours, theirs)
    assert set(ours) == {"_local_scalar_dense"}  # of fairseq's encoder and positions


@pytest.mark.parametrize("accuracy", [False, True])
def test_an_update_waits_for_the_device_no_more_often_than_fairseqs(accuracy):
    assert_waits_no_more_than_fairseqs(accuracy)


def test_the_check_of_waiting_can_fail(monkeypatch):
    by_label = SBLabelSmoothedCrossEntropy._by_label

    def asking(self, model, sample):
        live_of(sample["net_input"]["prev_output_tokens"])
        return by_label(self, model, sample)

    monkeypatch.setattr(SBLabelSmoothedCrossEntropy, "_by_label", asking)
    with pytest.raises(AssertionError, match="nonzero"):
        assert_waits_no_more_than_fairseqs(False)


def assert_smoothed(epsilon, computed=False):
    """fairseq's formula on log-probabilities, forward and gradient.

    Args:
        computed: whether the logits are some layer's, as a model's are.
    """
    torch.manual_seed(8)
    made = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    logits = made * 1 if computed else made
    labels = torch.tensor([4, 10, 0, 4, 7, 1, 2])
    weight = torch.randn(7, dtype=torch.float64)
    ours, nll = smoothed_loss(logits, labels, 0.1)
    theirs, expected = label_smoothed_nll_loss(
        made.log_softmax(-1), labels, epsilon, reduce=False
    )
    exact = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(nll, expected, **exact)
    torch.testing.assert_close(ours, theirs, **exact)
    gradients = [
        torch.autograd.grad((x * weight).sum(), made)[0] for x in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, **exact)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("size", [1, 24, 10**6])
def test_the_smoothed_loss_is_fairseqs(monkeypatch, size, computed):
    monkeypatch.setattr("sbnmt_plugin.numerics.AT_A_TIME", size)  # 1, 2, 7 rows
    assert_smoothed(0.1, computed)


@pytest.mark.parametrize("computed", [False, True])
def test_the_check_of_the_smoothed_loss_can_fail(computed):
    with pytest.raises(AssertionError):
        assert_smoothed(0.11, computed)


def test_the_gradient_takes_the_place_of_a_models_logits():
    """One matrix of the vocabulary's size, not two; so there is no second pass."""
    made = torch.randn(7, 11, requires_grad=True)
    logits, given = made * 1, []
    logits.register_hook(given.append)
    loss = smoothed_loss(logits, torch.arange(7), 0.1)[0].sum()
    loss.backward(retain_graph=True)
    assert given[0].data_ptr() == logits.data_ptr()
    assert torch.equal(made.grad, logits)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("shape", [(7, 11), (1, 7, 11)])
def test_logits_that_nothing_computed_stay_as_they_are(shape):
    logits = torch.randn(shape, requires_grad=True)
    before = logits.detach().clone()
    rows = logits if len(shape) == 2 else logits[0]  # a view of them
    loss = smoothed_loss(rows, torch.arange(7), 0.1)[0].sum()
    loss.backward(retain_graph=True)
    first = logits.grad.clone()
    loss.backward()
    assert torch.equal(logits, before)
    assert torch.equal(logits.grad, 2 * first)


def test_the_smoothed_loss_of_half_precision_is_float32():
    logits = (4 * torch.randn(5, 300)).bfloat16().requires_grad_()
    labels = torch.arange(5)
    loss, _ = smoothed_loss(logits, labels, 0.1)
    exact, _ = smoothed_loss(logits.double(), labels, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=1e-5)
    loss.sum().backward()
    assert logits.grad.dtype == torch.bfloat16
    assert float(logits.grad.float().sum(-1).abs().max()) < 0.02  # p sums to 1


def assert_loss_is_fairseqs(prefix=0, model=None):
    """Of a plain Transformer, by fairseq's criterion and by ours, with gradients."""
    model = model or transformer()
    words = model.decoder.dictionary
    prev = streams(model)[L2R::2].clone()
    prev[:, 0] = words.eos()
    labels = F.pad(prev[:, 1:], (0, 1), value=words.pad())
    labels[range(3), prev.ne(words.pad()).sum(1) - 1] = words.eos()
    sample = {
        "net_input": {**source(model), "prev_output_tokens": prev},
        "target": labels,
        "live": live_of(prev),
        "stream_lengths": labels.ne(words.pad()).sum(1).tolist(),
        "ntokens": int(labels.ne(words.pad()).sum()),
        "nsentences": 3,
    }
    task = fake_task()
    task.directions = (L2R,)
    found = []
    for kind in (SBLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion):
        value, _, log = kind(task, False, 0.1, prefix, True)(model, sample)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        counts = [float(log[key]) for key in ("nll_loss", "n_correct", "total")]
        found.append((value, counts, gradients))
    (ours, our_counts, our_gradients), (theirs, counts, gradients) = found
    assert float(ours) == pytest.approx(float(theirs), rel=1e-6)
    assert our_counts == pytest.approx(counts, rel=1e-6)
    for left, right in zip(our_gradients, gradients):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)  # float32


@pytest.mark.parametrize("prefix", [0, 2])
def test_a_teachers_loss_is_fairseqs(prefix):
    assert_loss_is_fairseqs(prefix)


def test_the_loss_of_any_other_decoder_is_fairseqs(monkeypatch):
    monkeypatch.setattr(criterion, "DECODERS", ())
    assert_loss_is_fairseqs()


@pytest.mark.parametrize("make", [transformer, rnn_model])
def test_a_teachers_padding_gets_no_logits(make):
    """fairseq's criterion asks for logits of padding, too."""
    model, sizes = make(), []
    layer = model.decoder.output_projection
    layer.register_forward_hook(lambda _, inputs, out: sizes.append(out.shape[:-1]))
    assert_loss_is_fairseqs(model=model)
    ours, theirs = sizes  # in this order
    assert ours.numel() < theirs.numel()
    assert len(layer._forward_pre_hooks) == 0


def test_the_check_of_live_rows_can_fail(monkeypatch):
    def unsorted(model, live):
        return live_rows_alone(model, live.flip(0))

    monkeypatch.setattr(criterion, "live_rows_alone", unsorted)
    with pytest.raises(AssertionError):
        assert_loss_is_fairseqs()


def test_the_check_of_a_teachers_loss_can_fail(monkeypatch):
    def unsmoothed(logits, labels, epsilon):
        return smoothed_loss(logits, labels, 0.0)

    monkeypatch.setattr(criterion, "smoothed_loss", unsmoothed)
    with pytest.raises(AssertionError):
        assert_loss_is_fairseqs()


def test_the_logged_values_are_bits_per_label():
    from fairseq.logging import metrics

    model = sb_model(sb_lambda=0.7)
    sample = make_sample(model)
    _, _, log = make_criterion()(model, with_stream_labels(sample))
    expected = slow_loss(model, sample, 0.1)
    with metrics.aggregate() as meters:
        SBLabelSmoothedCrossEntropy.reduce_metrics([log, log])
    values = meters.get_smoothed_values()
    for place, name in enumerate(("l2r", "r2l")):
        bits = math.log(2) * expected["labels"][place]
        for key in ("loss", "nll_loss"):
            value = float(values[f"{key}_{name}"])
            assert value == pytest.approx(expected[key][place] / bits, abs=1e-3)
        ppl = 2 ** (expected["nll_loss"][place] / bits)
        assert float(values[f"ppl_{name}"]) == pytest.approx(ppl, rel=1e-2)
        assert 0 <= float(values[f"accuracy_{name}"]) <= 100


def test_the_criterion_needs_the_task():
    with pytest.raises(ValueError, match="--task sb_translation"):
        SBLabelSmoothedCrossEntropy(fake_task(), False, 0.1, 0, False)


SETTINGS = [
    {"sb_fusion": "gate"},
    {"sb_lambda": 0.0},
    {"sb_fusion": "linear", "sb_learn_lambda": True},
    {"sb_fusion": "relu", "sb_lambda": 0.5},
    {"sb_future_dropout": 0.5},
    {"sb_future_shift": True},
    {"sb_reader": True, "sb_freeze_writer": False},  # as 0.2.0 could
    {"sb_reader": True, "sb_learn_lambda": True},
    {"share_all_embeddings": True},
]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_no_parameter_is_without_a_gradient(options):
    """DDP fails on idle ones."""
    model = sb_model(**options).train()
    sample = make_sample(model)
    loss, _, _ = make_criterion()(model, with_stream_labels(sample))
    loss.backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None]
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert idle == frozen
    reading = [
        name for name in idle if ".self_attn.reader." in name or ".fusion." in name
    ]
    frozen_writer = "sb_reader" in options and "sb_freeze_writer" not in options
    assert bool(idle) == frozen_writer and not reading
    if options.get("sb_learn_lambda"):
        weight = model.decoder.layers[0].self_attn.fusion.weight
        assert weight.grad.abs().sum() > 0


def test_future_dropout_acts_in_training_alone():
    model = sb_model(sb_lambda=0.7, sb_future_dropout=0.5)
    prev = streams(model)
    plain = logits(model, prev)
    assert torch.equal(plain, logits(model, prev))
    model.train()
    assert not torch.allclose(plain, logits(model, prev))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("fusion", ["tanh", "gate"])
def test_a_transformers_weights_initialise_the_model(shared, fusion, monkeypatch):
    """The L2R half at λ = 0 then scores every word as the Transformer does."""
    monkeypatch.setattr(
        "fairseq.utils.softmax", lambda x, dim, onnx_trace=False: x.softmax(dim)
    )
    embeddings = {"share_all_embeddings": shared}
    plain = transformer(seed=8, **embeddings)
    weight = {} if fusion == "gate" else {"sb_lambda": 0.0}
    model = sb_model(sb_fusion=fusion, **weight, **embeddings)
    model.load_state_dict(plain.state_dict())
    words = model.decoder.dictionary
    tags = [words.index(tag) for tag in TAGS]
    table = model.decoder.embed_tokens.weight
    for tag in tags:
        assert table[tag].equal(table[words.eos()])
    if fusion == "gate":
        return
    prev = streams(model)
    teacher_prev = prev[L2R::2].clone()
    teacher_prev[:, 0] = words.eos()
    expected, _ = plain(**source(plain), prev_output_tokens=teacher_prev)
    shown = teacher_prev.ne(words.pad())
    ours = logits(model, prev)[L2R::2]
    no_tag = [i for i in range(len(words)) if i not in tags]
    torch.testing.assert_close(
        ours[shown][:, no_tag], expected[shown][:, no_tag], rtol=0, atol=1e-10
    )


def test_a_transformer_without_tags_gets_their_rows():
    words = dictionary(tags=False)
    model = sb_model()
    fresh = model.state_dict()
    state = {k: v for k, v in fresh.items() if "sb_version" not in k}
    for name in state:
        if "embed_tokens" in name or "output_projection" in name:
            state[name] = state[name][: len(words)].clone()
    model.load_state_dict(state)
    assert model.decoder.embed_tokens.weight.size(0) == len(words) + 2


def test_weights_of_another_dictionary_are_refused():
    fresh = sb_model().state_dict()
    state = sb_model(words=20).state_dict()
    with pytest.raises(
        ValueError, match="initialise from a model trained with the same"
    ):
        adopt_transformer(state, fresh, 2, [13, 14], [13, 14])


def test_fine_tuning_starts_from_a_teacher(data, teacher, tmp_path, caplog):
    words = [*SB, "--finetune-from-model", teacher, "--max-epoch", 1]
    path = run_train(data, tmp_path, *words)
    assert "initialised from a Transformer" in caplog.text
    assert "H-0" in run_generate(data, path)


@FAMILIES
def test_two_and_two_epochs_equal_four(data, tmp_path, family):
    words = [*family, "--dropout", 0.2, "--update-freq", 2]
    whole = run_train(data, tmp_path / "four", *words, "--max-epoch", 4)
    run_train(data, tmp_path / "two", *words, "--max-epoch", 2)
    resumed = run_train(data, tmp_path / "two", *words, "--max-epoch", 4)
    left, right = load(whole)["model"], load(resumed)["model"]
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)


def run_process(*words, rank=None, port=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if rank is not None:
        environment |= {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port():
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


DDP = [
    *["--distributed-init-method", "env://", "--distributed-no-spawn"],
    *["--distributed-world-size", "2", "--distributed-backend", "gloo"],
    *["--ddp-backend", "legacy_ddp"],
]


def run_two(data, save, family, *words):
    port = free_port()
    command = ["-m", "fairseq_cli.train", data, "--save-dir", save, *PLUGIN, *TINY]
    processes = [
        run_process(
            *command,
            *family,
            *DDP,
            "--distributed-rank",
            rank,
            *words,
            rank=rank,
            port=port,
        )
        for rank in (0, 1)
    ]
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    for process in processes:
        finished = process.returncode <= 0 and "done training" in "".join(outputs)
        assert finished, "\n".join(o[-2500:] for o in outputs)
    return outputs


@FAMILIES
def test_two_processes_equal_one_with_two_batches(data, tmp_path, family):
    """First update: loss and gradient norm, no dropout; then they resume safely, which
    is the same for every family."""
    family = [*family, *["--sb-future-dropout", 0] * (family is SB)]
    first = ["--max-update", 1, "--log-interval", 1]
    outputs = run_two(data, tmp_path / "two", family, *first)
    assert "distributed init (rank 1)" in outputs[1]
    assert "training on 2 devices" in outputs[0]
    run_train(data, tmp_path / "one", *family, *first, "--update-freq", 2)
    two, one = (load(tmp_path / n / "checkpoint_last.pt") for n in ("two", "one"))

    def value(state, name):
        meters = {row[1]: row[3] for row in state["extra_state"]["metrics"]["train"]}
        return float(meters[name]["val"])

    for name in ("loss", "loss_l2r", "loss_r2l", "gnorm", "wpb"):
        assert value(two, name) == pytest.approx(value(one, name), rel=1e-4), name
    for name, tensor in one["model"].items():
        torch.testing.assert_close(two["model"][name], tensor, rtol=0, atol=1e-4)

    if ABD[-1] in family:
        return
    more = [*first[2:], "--max-update", 3, "--sb-probe", 3]
    outputs = run_two(data, tmp_path / "two", family, *more)
    assert "num_updates 3" in outputs[0] or "3 updates" in outputs[0]
    assert re.search(r"read_bits_l2r=-?\d", outputs[0])


def test_a_model_is_known_through_both_of_fairseqs_wrappers():
    model = sb_model()
    assert bare(model) is model
    assert bare(ModuleProxyWrapper(torch.nn.DataParallel(model, []))) is model


def test_a_gpus_attention_is_not_cudnns(data, tmp_path):
    torch.backends.cuda.enable_cudnn_sdp(True)
    run_train(data, tmp_path, *SB, "--max-update", 1, "--no-save")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@FAMILIES
def test_hydra_and_the_command_line_start_alike(data, tmp_path, family):
    options = ["--max-update", 1, "--log-interval", 1]
    run_train(data, tmp_path / "line", *family, *options)
    process = run_process(
        "-m",
        "fairseq_cli.hydra_train",
        "--config-dir",
        ROOT / "examples" / "toy",
        "--config-name",
        "sb_transformer",
        f"common.user_dir={ROOT / 'sbnmt_plugin'}",
        f"task.data={data}",
        f"checkpoint.save_dir={tmp_path / 'hydra'}",
        f"hydra.run.dir={tmp_path / 'run'}",
        "dataset.max_tokens=500",
        "optimization.max_update=1",
        "optimization.lr=[0.01]",
        "lr_scheduler._name=fixed",
        "+model.encoder_embed_dim=32",
        "+model.encoder_ffn_embed_dim=24",
        "+model.encoder_layers=1",
        "~model.sb_lambda",
        "~model.sb_future_shift",
        f"model._name={family[-1]}",
    )
    output, _ = process.communicate(timeout=240)
    # not the exit status: fairseq's loader thread may abort the interpreter's exit
    assert "done training" in output, output[-3000:]
    states = [
        load(tmp_path / name / "checkpoint_last.pt") for name in ("line", "hydra")
    ]
    losses = []
    for state in states:
        rows = state["extra_state"]["metrics"]["train"]
        losses.append(float({row[1]: row[3] for row in rows}["loss"]["val"]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert states[1]["cfg"]["model"].get("sb_lambda") == (0.1 if family is SB else None)


class Payload:
    """Would touch a file if it were unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (Path(self.path).touch, ())


def test_a_checkpoint_that_carries_code_is_refused_unrun(data, trained, tmp_path):
    touched = tmp_path / "touched"
    state = load(trained)
    state["extra_state"]["harmless"] = Payload(touched)
    path = tmp_path / "evil.pt"
    torch.save(state, path)
    with pytest.raises(Exception, match=r"[Uu]nsupported|[Ww]eights.only"):
        run_generate(data, path)
    assert not touched.exists()
    torch.load(path, weights_only=False)  # the check can fail: this runs it
    assert touched.exists()


def test_the_streams_of_a_batch_are_what_the_files_say(data):
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.utils import strip_pad

    parser = options.get_training_parser()
    command = [str(data), *PLUGIN, *ALL, *SB, "--max-tokens", "100"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, command))
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    dataset = task.dataset("train")
    texts = data.parent / "texts"
    gold = (texts / "train.de").read_text().splitlines()
    other = (texts / "train.r2l").read_text().splitlines()
    batch = dataset.collater([dataset[i] for i in (0, 3, 5, 7)])
    words = task.target_dictionary
    prev, labels = batch["net_input"]["prev_output_tokens"], batch["stream_target"]
    count = 0
    for row, index in enumerate(batch["id"].tolist()):
        l2r, r2l = labels[2 * row], labels[2 * row + 1]
        texts = [
            words.string(strip_pad(tokens, words.pad())).split()
            for tokens in (batch["target"][row], l2r, r2l)
        ]
        assert texts == [gold[index].split()] * 2 + [other[index].split()[::-1]]
        for stream, direction in ((l2r, L2R), (r2l, R2L)):
            length = int(stream.ne(words.pad()).sum())
            assert stream[length - 1] == words.eos()
            given = prev[2 * row + direction]
            assert given[0] == words.index(TAGS[direction])
            assert given[1:length].equal(stream[: length - 1])
            count += length
    assert batch["ntokens"] == count
    sizes = [len(gold[i].split()) + 1 for i in range(len(dataset))]
    assert [dataset.num_tokens(i) for i in range(5)] == [
        max(dataset.src_sizes[i], 2 * size) for i, size in enumerate(sizes[:5])
    ]
    assert opposite(opposite(prev)).equal(prev)
    indices = dataset.ordered_indices()
    batches = dataset.batch_by_size(indices, 100, None, 8)
    assert sorted(i for batch in batches for i in batch) == sorted(indices)
    for one in batches:
        assert len(one) * max(dataset.num_tokens(i) for i in one) <= 100


def test_namespace_is_all_that_is_allow_listed_beyond_torchs_own():
    from sbnmt_plugin.checkpoints import ALLOWED

    assert Namespace in ALLOWED
