"""fairseq's own commands with the plugin, as users type them."""

import json
import shutil
import sys
from unittest import mock

import pytest
import torch
from commands import (
    ABD,
    PLUGIN,
    SB,
    SIZES,
    assert_batch_size_does_not_matter,
    assert_prints_three_hypotheses,
    best,
    changeable,
    lines,
    load,
    run_generate,
    run_interactive,
    run_train,
)
from fairseq import options
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import progress_bar
from fairseq_cli import validate
from steps import call, put

from sbnmt_plugin.network.cpu_products import short_sums
from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.commands import probe_interaction, probe_reading


@pytest.fixture(scope="module")
def trained_abd(data, tmp_path_factory):
    """An ABD-NMT model that has learned something."""
    words = [*ABD, "--max-epoch", 22, "--no-epoch-checkpoints"]
    return run_train(data, tmp_path_factory.mktemp("abd"), *words)


@pytest.fixture(params=["trained", "trained_abd"], ids=["sb", "abd"])
def model(request):
    """A checkpoint of either family."""
    return request.getfixturevalue(request.param)


def test_generate_writes_what_fairseq_writes(data, model):
    assert_prints_three_hypotheses(run_generate(data, model, "--nbest", 3))


def test_the_score_is_log2_of_the_normalised_sum(data, trained):
    output = run_generate(data, trained, "--lenpen", 0.6)
    for i, ((score, _),) in lines(output, "H").items():
        values = [float(x) for x in lines(output, "P")[i][0][0].split()]
        penalty = ((5 + len(values)) / 6) ** 0.6
        assert float(score) == pytest.approx(sum(values) / penalty, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "options"),
    [("trained", []), ("trained", ["--sb-pairing", "best"]), ("trained_abd", [])],
    ids=str,
)
def test_batch_size_does_not_matter(data, name, options, request):
    path = request.getfixturevalue(name)
    assert_batch_size_does_not_matter(data, path, *options)


@pytest.mark.parametrize("flag", ["--sb-bf16", "--sb-int8"])
@pytest.mark.parametrize(("name", "most"), [("trained", 0.1), ("trained_abd", 0.3)])
def test_decoding_in_narrow_numbers_changes_little(data, name, most, flag, request):
    """Stated tolerance: scores within 0.1, and nine texts of ten; ABD-NMT may read
    another text by then, and without VNNI inputs have a bit less."""
    path = request.getfixturevalue(name)
    wide, narrow = (
        best(run_generate(data, path)),
        best(run_generate(data, path, flag)),
    )
    same = [wide[i][1] == narrow[i][1] for i in wide]
    assert sum(same) >= 0.9 * len(same)
    gaps = [abs(float(wide[i][0]) - float(narrow[i][0])) for i in wide]
    coarse = flag == "--sb-int8" and short_sums()
    assert (
        0 < max(gaps) < (2 * most if coarse else most)
    )  # other numbers, but close ones


def test_records_say_who_won(data, model, tmp_path):
    path = tmp_path / "records.jsonl"
    output = run_generate(data, model, "--sb-records", path)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(record["id"] for record in records) == list(range(SIZES["test"]))
    for record in records:
        answer = record[record["winner"]]
        score, text = best(output)[record["id"]]
        assert answer["text"] == text
        assert answer["score"] / torch.log(torch.tensor(2.0)) == pytest.approx(
            float(score), abs=1e-4
        )
        assert record["source"] == lines(output, "S")[record["id"]][0][0]
    assert {"l2r", "r2l"} >= {record["winner"] for record in records}
    with pytest.raises(ValueError, match=r"--sb-records .* must be a new"):
        run_generate(data, model, "--sb-records", path)
    assert len(path.read_text().splitlines()) == SIZES["test"]


@pytest.mark.parametrize("direction", ["l2r", "r2l"])
def test_one_direction_may_be_made_to_answer(data, model, tmp_path, direction):
    path = tmp_path / "records.jsonl"
    run_generate(data, model, "--sb-answer", direction, "--sb-records", path)
    for line in path.read_text().splitlines():
        assert json.loads(line)["winner"] == direction


def test_an_r2l_teacher_speaks_natural_order(data, teacher):
    output = run_generate(data, teacher, "--sb-direction", "r2l")
    pairs = [
        (text.split(), lines(output, "T")[i][0][0].split())
        for i, (_, text) in best(output).items()
    ]
    # the R2L texts of the training data end in another word: the rest is natural
    same = sum(h[0] == t[0] for h, t in pairs)
    assert same > len(pairs) / 3


def test_an_ensemble_is_searched_together(data, model, tmp_path):
    family = ["--arch", load(model)["cfg"]["model"].arch]
    other = run_train(data, tmp_path / "b", *family, "--max-epoch", 2, "--seed", 7)
    alone = best(run_generate(data, model))
    pair = best(run_generate(data, f"{model}:{other}"))
    twice = best(run_generate(data, f"{model}:{model}"))
    assert [row[1] for row in alone.values()] == [row[1] for row in twice.values()]
    assert alone != pair


def test_interactive_reads_lines_and_empty_lines(data, model):
    typed = "w1 w2 w3\n\nw4 w5\n \n"
    output = run_interactive(data, model, typed, "--buffer-size", 4)
    assert sorted(lines(output, "H")) == [0, 1, 2, 3]
    again = run_interactive(data, model, typed)
    texts = [best(again)[i][1] for i in range(4)]
    assert texts == [best(output)[i][1] for i in range(4)]
    assert [not text for text in texts] == [False, True, False, True]


@pytest.mark.parametrize("symbol", RESERVED)
def test_interactive_refuses_a_reserved_symbol(data, trained, symbol):
    message = f"sentence 1 of the input must not contain {symbol}"
    words = ["w1", "w2"] * (symbol != RESERVED[0])  # the first one stands alone
    with pytest.raises(ValueError, match=message):
        run_interactive(data, trained, " ".join([*words, symbol]) + "\n")


def test_interactive_reads_the_symbol_of_unknown_words(data, trained):
    assert "H-0" in run_interactive(data, trained, "w1 <unk>\n")


def test_interactive_records_have_no_id(data, trained, tmp_path):
    path = tmp_path / "records.jsonl"
    run_interactive(data, trained, "w1 w2\n", "--sb-records", path)
    record = json.loads(path.read_text())
    assert record["id"] is None
    assert record["source"] == "w1 w2"


def test_a_prefix_from_the_data_binds(data, model):
    output = run_generate(data, model, "--prefix-size", 2)
    for i, (_, text) in best(output).items():
        target = lines(output, "T")[i][0][0].split()
        assert text.split()[:2] == target[:2]


def test_fairseq_validate_gives_the_loss_of_the_training(data, trained, monkeypatch):
    words = [data, "--path", trained, *PLUGIN, "--cpu", "--batch-size", 4]
    words += ["--log-format", "simple"]
    found = {}
    monkeypatch.setattr(
        progress_bar.SimpleProgressBar,
        "print",
        lambda self, stats, tag, step: found.update(stats),
    )
    parser = options.get_validation_parser()
    args = options.parse_args_and_arch(parser, list(map(str, words)))
    validate.main(convert_namespace_to_omegaconf(args))
    known = load(trained)["extra_state"]["val_loss"]
    assert found["loss"] == pytest.approx(known, abs=2e-3)
    assert found["loss_l2r"] != found["loss_r2l"]


@pytest.mark.parametrize(("words", "count"), [([], 0), (["--num-workers", 2], 2)])
def test_a_search_loads_its_batches_itself(data, trained, monkeypatch, words, count):
    """A user's own number of processes counts, and a training's default."""
    found = []

    def noted(self, *args, **kwargs):
        found.append(self.num_workers)
        self.num_workers, self.persistent_workers = 0, False  # in this process, none
        return made(self, *args, **kwargs)

    made = EpochBatchIterator._get_iterator_for_epoch
    monkeypatch.setattr(EpochBatchIterator, "_get_iterator_for_epoch", noted)
    run_generate(data, trained, *words)
    assert found == [count]


def test_the_start_symbol_is_never_written(data, model):
    """Where bans leave a search nothing else; it would show in numbers alone."""
    words = ["--no-repeat-ngram-size", 1, "--min-len", 12, "--max-len-b", 14]
    output = run_generate(data, model, *words)
    texts, numbers = lines(output, "H"), lines(output, "P")
    for i, found in texts.items():
        for (_, text), (scores,) in zip(found, numbers[i]):
            assert len(text.split()) + 1 == len(scores.split())


def test_a_prefix_needs_target_texts(data, trained, tmp_path):
    folder = changeable(data, tmp_path / "bin")
    for path in folder.glob("test.*.de.*"):
        path.unlink()
    assert len(best(run_generate(folder, trained))) == SIZES["test"]
    with pytest.raises(ValueError, match="--prefix-size takes prefixes from the tar"):
        run_generate(folder, trained, "--prefix-size", 1)


def test_records_do_not_follow_a_dangling_link(data, trained, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="must be a new file, but exists"):
        run_generate(data, trained, "--sb-records", tmp_path / "link")


def test_alignments_are_printed(data, model):
    output = run_generate(data, model, "--print-alignment", "hard")
    for i, ((pairs,),) in lines(output, "A").items():
        text = best(output)[i][1].split()
        assert [int(p.split("-")[1]) for p in pairs.split()] == list(range(len(text)))
    output = run_generate(data, model, "--print-alignment", "soft")
    for i, ((weights,),) in lines(output, "A").items():
        assert len(weights.split()) == len(best(output)[i][1].split()) + 1


def test_interactive_refuses_alignments_that_it_cannot_print(data, trained):
    words = data, trained, "w1 w2\nw3\n", "--print-alignment"
    assert len(lines(run_interactive(*words, "hard"), "A")) == 2
    with pytest.raises(ValueError, match="--print-alignment must be hard for"):
        run_interactive(*words, "soft")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--num-shards", 2], "--num-shards is not supported"),
        (["--beam", 1], "--beam must be ≥ 2"),
        (["--unkpen", -1], "--unkpen must be ≥ 0"),
        (["--temperature", 2], "--temperature is not supported"),
        (["--sb-rescore", "1e308"], "--sb-rescore must be in .0, 1,000,000"),
        (["--sb-rescore", -1], "--sb-rescore must be in .0, 1,000,000"),
        (["--sb-rescore", "inf"], "--sb-rescore must be in .0, 1,000,000"),
        (["--unkpen=-inf", "--sb-stop", "first"], "--unkpen must be > -inf"),
        (["--prefix-size", 1, "--sb-answer", "r2l"], "--prefix-size binds the start"),
        (["--lenpen", "nan"], "--lenpen must be in"),
        (["--lenpen", "1e6"], "--lenpen must be in"),
        (["--no-repeat-ngram-size", -1], "--no-repeat-ngram-size must be ≥ 0"),
        (["--sb-records", "no/such/folder/r"], "must be in a folder that exists"),
        (["--sb-direction", "l2r"], "trained with --sb-direction both"),
        (["--min-len", 30, "--max-len-b", 20], "--min-len must be ≤"),
        (["--max-len-a", "nan"], "--max-len-a must be finite"),
        (["--max-len-a", "inf"], "--max-len-a must be finite"),
        (["--sb-records="], "--sb-records  must be a new file, but has no name"),
        (["--nbest", 5, "--beam", 4], "--nbest must be in 1 … 4"),
        (["--nbest", 0], "--nbest must be in 1 … 4"),
        (["--nbest", 3, "--beam", 3], "--nbest must be in 1 … 2"),
        (["--min-len", -5, "--max-len-b", -2], "--min-len must be ≥ 0, but is -5"),
        (["--max-len-a=-1e19"], "--min-len must be ≤ .* allow -1023"),
        (
            ["--no-repeat-ngram-size", 1, "--min-len", 150],
            r"no hypothesis of sentence \d+ can end: no token is left that --no-repeat",
        ),
    ],
    ids=str,
)
def test_what_the_search_cannot_do_is_refused_by_name(data, trained, options, message):
    with pytest.raises(ValueError, match=message):
        run_generate(data, trained, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prefix-size", 2], "--prefix-size is not supported"),
        (["--max-tokens", 3], "at most 3 tokens .*--max-tokens, but one has 5"),
    ],
    ids=str,
)
def test_what_a_typed_sentence_cannot_have_is_refused(data, trained, options, message):
    with pytest.raises(ValueError, match=message):
        run_interactive(data, trained, "w1 w2 w3 w4\n", *options)


def test_processes_that_share_a_test_set_translate_each_sentence_once(data, trained):
    """The N processes of one fairseq-generate, each with its rank."""
    whole = best(run_generate(data, trained, "--batch-size", 3))
    parts = {}
    for rank in (0, 1):
        words = ["--distributed-world-size", 2, "--distributed-rank", rank]
        part = best(run_generate(data, trained, "--batch-size", 3, *words))
        assert part and not set(part) & set(parts)
        parts |= part
    assert {i: text for i, (_, text) in parts.items()} == {
        i: text for i, (_, text) in whole.items()
    }


def test_an_odd_beam_is_rounded_down_with_a_warning(data, trained, caplog):
    odd = run_generate(data, trained, "--beam", 3)
    assert "--beam 3 is odd; searching with 2" in caplog.text
    assert best(odd) == best(run_generate(data, trained, "--beam", 2))


def test_fairseqs_default_beam_is_rounded_down_without_a_warning(data, trained, caplog):
    odd = run_generate(data, trained, "--beam", 5)
    assert not [x for x in caplog.records if "is odd" in x.message and x.levelno > 20]
    assert best(odd) == best(run_generate(data, trained))


def test_a_forgotten_task_is_an_error(data, trained):
    with pytest.raises(ValueError, match="--task sb_translation"):
        run_generate(data, trained, task=False)


def test_a_stock_checkpoint_is_refused(data, tmp_path):
    words = ["--task", "translation", "--arch", "transformer_tiny"]
    criterion = ["--criterion", "cross_entropy", "--max-epoch", 1]
    path = run_train(data, tmp_path, *words, *criterion)
    with pytest.raises(ValueError, match="was not trained by --task sb_translation"):
        run_generate(data, path)
    for folder, words in (tmp_path, []), (tmp_path / "a", ["--restore-file", path]):
        with pytest.raises(ValueError, match=r"both, for .* was trained by another"):
            run_train(data, folder, *SB, "--max-epoch", 2, *words)


@pytest.mark.parametrize("flag", ["--restore-file", "--continue-once"])
def test_a_training_goes_on_from_its_own_direction_alone(data, teacher, tmp_path, flag):
    words = [flag, teacher, "--max-epoch", 99]
    with pytest.raises(ValueError, match=r"both, for its .* with --sb-direction r2l: "):
        run_train(data, tmp_path, *SB, *words)


def test_a_training_begins_anew_from_the_weights_of_any(
    data, teacher, tmp_path, caplog
):
    words = ["--restore-file", teacher, "--max-update", 1, "--reset-optimizer"]
    words += ["--reset-dataloader", "--reset-lr-scheduler", "--reset-meters"]
    run_train(data, tmp_path, *SB, *words)
    assert "initialised from a Transformer" in caplog.text


def test_a_teacher_needs_its_direction(data, teacher):
    with pytest.raises(ValueError, match="trained with --sb-direction r2l"):
        run_generate(data, teacher)


def test_an_ensemble_of_two_directions_is_refused(data, trained, teacher):
    with pytest.raises(ValueError, match="must have been trained with one --sb-direc"):
        run_generate(data, f"{trained}:{teacher}")


def test_weights_of_another_family_are_refused(data, trained_abd, teacher, tmp_path):
    words = [*ABD, "--max-epoch", 1, "--finetune-from-model"]
    with pytest.raises(Exception, match="the architectures match") as caught:
        run_train(data, tmp_path / "a", *words, teacher)
    assert "has no backward_decoder.sb_version" in str(caught.value.__context__)
    path = run_train(data, tmp_path / "b", *words, trained_abd)
    assert len(best(run_generate(data, path))) == SIZES["test"]


def test_what_streams_read_of_each_other_is_not_asked_of_abd(data, trained_abd):
    words = [str(data), "--path", str(trained_abd), "--cpu"]
    refused = pytest.raises(ValueError, match="--path must be one sb_transformer: no")
    with mock.patch.object(sys, "argv", ["probe_reading", *words]), refused:
        probe_reading.main()


def test_another_order_of_the_dictionary_is_refused(data, trained, teacher, tmp_path):
    """Same size, so that nothing but the checksum tells."""
    folder = changeable(data, tmp_path / "bin")
    path = folder / "dict.de.txt"
    path.write_text("\n".join(path.read_text().split("\n")[-2::-1]) + "\n")
    refused = pytest.raises(ValueError, match="the target dictionary must be the one")
    with refused:
        run_generate(folder, trained)
    with refused:
        run_generate(folder, teacher, "--sb-direction", "r2l")
    for start in (trained, teacher):
        with refused:
            words = ["--finetune-from-model", start, "--max-epoch", 1]
            run_train(folder, tmp_path / "new", *SB, *words)
    save = tmp_path / "resumed"
    save.mkdir()
    shutil.copy(trained, save / "checkpoint_last.pt")
    with refused:
        run_train(folder, save, *SB, "--max-epoch", 40)


def test_fairseqs_own_transformer_initialises_where_its_dictionary_fits(data, tmp_path):
    words = ["--task", "translation", "--arch", "transformer_tiny", "--max-epoch", 1]
    path = run_train(data, tmp_path / "a", *words, "--criterion", "cross_entropy")
    run_train(data, tmp_path / "b", *SB, "--finetune-from-model", path, *words[-2:])
    teacher = ["--arch", "transformer_tiny", "--sb-direction", "l2r"]
    for others in teacher, ABD:
        with pytest.raises(ValueError, match="lack the tags: train it by this task"):
            run_train(data, tmp_path / "c", *others, "--finetune-from-model", path)
    state = torch.load(path, weights_only=True)
    for name in ("encoder.embed_tokens", "decoder.embed_tokens"):
        weight = state["model"][f"{name}.weight"]
        state["model"][f"{name}.weight"] = torch.cat([weight, weight[:2]])
    torch.save(state, path)
    with pytest.raises(ValueError, match=r"must have 16 rows, .* but has 18"):
        run_train(data, tmp_path / "c", *SB, "--finetune-from-model", path)


def test_gold_data_trains_with_a_warning(gold_data, tmp_path, caplog):
    words = [*SB, "--share-all-embeddings", "--max-epoch", 1]
    path = run_train(gold_data, tmp_path, *words)
    assert "both streams are the same gold text" in caplog.text
    assert len(best(run_generate(gold_data, path))) == SIZES["test"]


def test_validation_by_bleu_keeps_the_best(data, tmp_path):
    path = run_train(
        data,
        tmp_path,
        *SB,
        *["--max-epoch", 3, "--eval-bleu", "--best-checkpoint-metric", "bleu"],
        *[
            "--eval-bleu-args",
            '{"beam": 2, "sb_stop": "first", "max_len_b": 8}',
            "--eval-bleu-remove-bpe",
        ],
        "--maximize-best-checkpoint-metric",
    )
    state = load(path)  # weights_only: BLEU counts are no numpy arrays
    assert (tmp_path / "checkpoint_best.pt").exists()
    assert state["extra_state"]["best"] > 0
    names = {row[1] for row in state["extra_state"]["metrics"]["valid"]}
    assert {"loss_l2r", "loss_r2l", "nll_loss_l2r", "_bleu_counts_0"} <= names


def test_unknown_search_options_of_validation_are_refused(data, tmp_path):
    words = [*SB, "--eval-bleu", "--eval-bleu-args", '{"beem": 2}']
    with pytest.raises(ValueError, match="--eval-bleu-args has unknown options beem"):
        run_train(data, tmp_path, *words, "--max-epoch", 1)


@pytest.mark.parametrize("value", ["{", "[1]"])
def test_validation_options_must_be_json(data, tmp_path, value):
    words = [*SB, "--eval-bleu", "--eval-bleu-args", value]
    with pytest.raises(ValueError, match="--eval-bleu-args must be"):
        run_train(data, tmp_path, *words, "--max-epoch", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--arch", "transformer_tiny"], "needs an sb_transformer"),
        ([*SB, "--sb-direction", "l2r"], "needs a one-directional --arch"),
        ([*SB, "--sb-fusion", "gate", "--sb-lambda", "0.1"], "gate has no λ"),
        ([*SB, "--sb-lambda", "nan"], "--sb-lambda must be finite"),
        ([*SB, "--sb-future-dropout", "1"], "--sb-future-dropout must be in"),
        (
            [*SB, "--sb-lambda", "0", "--sb-future-shift"],
            "--sb-future-shift must not be given with --sb-lambda 0",
        ),
        ([*SB, "--sb-lambda", "0", "--sb-reader"], "--sb-reader must not be given"),
        (
            [*SB, "--sb-reader", "--sb-fusion", "gate"],
            "keeps what a stream writes alone, which --sb-fusion gate would change",
        ),
        ([*SB, "--cross-self-attention"], "--cross-self-attention is not supported"),
        ([*SB, "--adaptive-softmax-cutoff", "4,8"], "needs the full softmax"),
        ([*ABD, "--sb-direction", "l2r"], "needs a one-directional --arch"),
        ([*ABD, "--no-cross-attention"], "--no-cross-attention is not supported"),
        ([*ABD, "--sb-probe", 5], "--sb-probe is for two streams that read each"),
    ],
    ids=str,
)
def test_what_training_cannot_do_is_refused_by_name(data, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run_train(data, tmp_path, *options, "--max-epoch", 1)


def test_overlong_examples_follow_fairseqs_rules(data, tmp_path, caplog):
    words = [*SB, "--max-epoch", 1, "--max-target-positions", 5]
    with pytest.raises(ValueError, match=r"at most 5 .* by --max-target-positions, "):
        run_train(data, tmp_path / "a", *words)
    run_train(data, tmp_path / "b", *words, "--skip-invalid-size-inputs-valid-test")
    assert "have invalid sizes and will be skipped" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        ["--sb-fusion", "gate"],
        ["--sb-fusion", "linear", "--sb-lambda", "0"],
        ["--sb-fusion", "relu", "--sb-learn-lambda"],
        ["--checkpoint-activations"],
        ["--sb-reader", "--quant-noise-pq", "0.1", "--quant-noise-pq-block-size", "4"],
        ["--decoder-layerdrop", "0.3", "--encoder-layerdrop", "0.3"],
        ["--encoder-normalize-before", "--decoder-normalize-before"],
        ["--decoder-learned-pos", "--encoder-learned-pos", "--layernorm-embedding"],
        ["--share-decoder-input-output-embed"],
        ["--quant-noise-pq", "0.1", "--quant-noise-pq-block-size", "4"],
        ["--update-freq", "2", "--sentence-avg"],
        [*ABD, "--checkpoint-activations", "--decoder-layerdrop", "0.3"],
        [*ABD, "--layernorm-embedding", "--quant-noise-pq", "0.1"],
    ],
    ids=str,
)
def test_options_of_training_work_and_are_saved(data, tmp_path, options):
    words = [*SB, *options, "--max-update", 2]
    if "--sb-reader" in options:
        writer = [word for word in words if word != "--sb-reader"]
        path = run_train(data, tmp_path / "writer", *writer)
        words += ["--finetune-from-model", path]
    path = run_train(data, tmp_path, *words)
    saved = load(path)["cfg"]["model"]
    for name, value in zip(options, [*options[1:], ""]):
        if name.startswith("--sb"):
            flags = "--sb-learn-lambda", "--sb-reader"
            expected = True if name in flags else value
            assert str(getattr(saved, name[2:].replace("-", "_"))) in (
                str(expected),
                f"{expected}.0",
            )
    assert len(best(run_generate(data, path, "--max-len-b", 5))) == SIZES["test"]


@pytest.mark.parametrize("text", ["w1@@ w2", "w1 w2"])
def test_a_probe_scores_text_without_subwords(data, trained, tmp_path, text):
    source = put(tmp_path / "in", "w1 w2", "w3")
    gold = put(tmp_path / "gold", text, "W3")
    words = [data, "--path", trained, "--cpu", "--input", source, "--reference", gold]
    if "@@" in text:
        with pytest.raises(ValueError, match=r"^--reference .* without subwords, but"):
            call(probe_interaction, *words)
    else:
        call(probe_interaction, *words)
