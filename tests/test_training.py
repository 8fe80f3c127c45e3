"""Training: gradients, resuming, processes, initialisation."""

import os
import re
import subprocess
import sys

import pytest
import torch
from commands import (
    ALL,
    PLUGIN,
    ROOT,
    SB,
    TINY,
    hydra_words,
    load,
    run_generate,
    run_train,
)
from fairseq.distributed import ModuleProxyWrapper
from helpers import dictionary, logits, sb_model, source, streams, transformer

from sbnmt_plugin.families.sb.initialisation import adopt_transformer
from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.training.train_step import bare


@pytest.mark.parametrize("learned", [False, True])
def test_beside_a_reader_and_lambda_nothing_is_trained(learned):
    model = sb_model(sb_reader=True, sb_learn_lambda=learned)
    trained = [name for name, x in model.named_parameters() if x.requires_grad]
    across = ".self_attn.reader.", ".self_attn.fusion."
    own = [name for name in model.state_dict() if any(part in name for part in across)]
    assert trained == own


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
    if not shared:  # the tags take nothing of </s>
        ours, expected = ours.log_softmax(-1), expected.log_softmax(-1)
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
    own, end = model.decoder.output_projection.weight[len(words) :], words.eos()
    assert not own.eq(state["decoder.output_projection.weight"][end]).all(1).any()


def test_each_dictionary_has_its_tags_at_places_of_its_own():
    sizes = {"encoder.embed_tokens.weight": 9, "decoder.embed_tokens.weight": 6}
    given = {name: torch.rand(count, 2) for name, count in sizes.items()}
    fresh = {name: torch.rand(count + 2, 2) for name, count in sizes.items()}
    made, end = dict(given), 2
    adopt_transformer(made, fresh, end, source_tags=[9, 10], target_tags=[6, 7])
    for name, words in given.items():
        assert made[name].equal(torch.cat([words, words[[end, end]]]))


def test_weights_of_another_dictionary_are_refused(data, teacher, tmp_path):
    """Even where the checkpoint says that they are of this one."""
    saved = load(teacher)
    for name, weight in saved["model"].items():
        if "embed_tokens" in name:
            saved["model"][name] = weight[:-1].clone()
    torch.save(saved, tmp_path / "cut.pt")
    words = [*SB, "--max-epoch", 1, "--finetune-from-model", tmp_path / "cut.pt"]
    with pytest.raises(ValueError, match=r"must have \d+ rows, .* and tags, but has"):
        run_train(data, tmp_path / "save", *words)


def test_fine_tuning_starts_from_a_teacher(data, teacher, tmp_path, caplog):
    words = [*SB, "--finetune-from-model", teacher, "--max-epoch", 1]
    path = run_train(data, tmp_path, *words)
    assert "initialised from a Transformer" in caplog.text
    assert "H-0" in run_generate(data, path)


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


def test_two_processes_equal_one_with_two_batches(data, tmp_path):
    """First update: loss and gradient norm, no dropout."""
    family = [*SB, "--sb-future-dropout", 0]
    first = ["--max-update", 1, "--log-interval", 1]
    outputs = run_two(data, tmp_path / "two", family, *first, "--sb-probe", 1)
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
    assert re.search(r"read_bits_l2r=-?\d", outputs[0])


def test_a_model_is_known_through_both_of_fairseqs_wrappers():
    model = sb_model()
    assert bare(model) is model
    assert bare(ModuleProxyWrapper(torch.nn.DataParallel(model, []))) is model


def test_a_gpus_attention_is_not_cudnns(data, tmp_path):
    torch.backends.cuda.enable_cudnn_sdp(True)
    run_train(data, tmp_path, *SB, "--max-update", 1, "--no-save")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_hydra_and_the_command_line_start_alike(data, tmp_path):
    options = ["--max-update", 1, "--log-interval", 1]
    run_train(data, tmp_path / "line", *SB, *options)
    process = run_process(
        *hydra_words(data, tmp_path, f"model._name={SB[-1]}"),
        *["dataset.max_tokens=500", "optimization.lr=[0.01]"],
        *["lr_scheduler._name=fixed", "+model.encoder_embed_dim=32"],
        *["+model.encoder_ffn_embed_dim=24", "+model.encoder_layers=1"],
        *["~model.sb_lambda", "~model.sb_future_shift"],
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
    assert states[1]["cfg"]["model"]["sb_lambda"] == 0.1


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
    counts = dataset.num_tokens_vec(range(len(dataset)))
    pairs = zip(dataset.src_sizes, sizes)
    assert counts.tolist() == [max(source, 2 * size) for source, size in pairs]
    indices = dataset.ordered_indices()
    batches = dataset.batch_by_size(indices, 100, None, 8)
    assert sorted(i for batch in batches for i in batch) == sorted(indices)
    for one in batches:
        assert len(one) * max(counts[one]) <= 100
    with pytest.raises(ValueError, match="-multiple must be ≥ 1, but is 0 instead"):
        dataset.batch_by_size(indices, 100, None, 0)
