"""sbnmt rerank: the n-best lists of two teachers, rescored by both."""

import commands
import pytest
import torch
from commands import load, run_generate, run_train
from steps import call, put

from sbnmt_plugin.search.score_texts import check_scores_texts
from sbnmt_plugin.tools import reranking
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import rerank


@pytest.fixture(scope="module")
def teachers(data, teacher, tmp_path_factory):
    """Checkpoints of an L2R and an R2L teacher, neither of them perfect."""
    save = tmp_path_factory.mktemp("l2r")
    words = ["--arch", "transformer_tiny", "--sb-direction", "l2r", "--max-epoch", 4]
    l2r = run_train(data, save, *words, "--no-epoch-checkpoints")
    save = tmp_path_factory.mktemp("r2l")
    words = ["--arch", "transformer_tiny", "--sb-direction", "r2l", "--max-epoch", 5]
    return l2r, run_train(data, save, *words, "--no-epoch-checkpoints")


def slow_log_probability(translator, source, text, backwards):
    """Of a text, word by word: one forward pass for each prefix."""
    task, (model,) = translator.task, translator.models
    encode = task.target_dictionary.encode_line
    tokens = encode(text, add_if_not_exist=False, append_eos=False).tolist()
    tokens = tokens[::-1] if backwards else tokens
    eos = task.target_dictionary.eos()
    line = task.source_dictionary.encode_line(source, add_if_not_exist=False)
    encoded = model.encoder(line[None].long(), torch.tensor([line.numel()]))
    total, prefix = 0.0, [eos]
    for token in [*tokens, eos]:
        logits = model.decoder(torch.tensor([prefix]), encoder_out=encoded)[0]
        total += logits[0, -1].log_softmax(-1)[token].item()
        prefix.append(token)
    return total


def n_best(data, path, direction, k, *words):
    """Texts of fairseq-generate's n-best lists."""
    output = run_generate(
        *(data, path, "--sb-direction", direction),
        *("--beam", k, "--nbest", k, "--max-len-b", 12, *words),
    )
    return {
        index: [text for _, text in found]
        for index, found in commands.lines(output, "H").items()
    }


def reranked(data, teachers, tmp_path, *words):
    sources = put_sources(data, tmp_path)
    output = tmp_path / "out.tsv"
    call(
        *(rerank, data, "--l2r", teachers[0], "--r2l", teachers[1], "--cpu"),
        *("--beam", 3, "--max-len-b", 12, "--input", sources, "--output", output),
        *words,
    )
    rows = [line.split("\t") for line in texts.read_lines(output)]
    return {int(i): (float(score), text) for i, score, text in rows}


def put_sources(data, tmp_path):
    """The test set's sources in order."""
    source = data.parent / "texts" / "test.en"
    return put(tmp_path / "test.en", *texts.read_lines(source))


def test_reranking_equals_the_slow_reference(data, teachers, tmp_path):
    found = reranked(data, teachers, tmp_path)
    lists = [n_best(data, p, d, 3) for p, d in zip(teachers, ("l2r", "r2l"))]
    translators = [
        reranking.Translator(
            [str(data), "--path", str(p), "--sb-direction", d, "--cpu"]
        )
        for p, d in zip(teachers, ("l2r", "r2l"))
    ]
    changed = 0
    for index, source in enumerate(texts.read_lines(tmp_path / "test.en")):
        union = list(dict.fromkeys(lists[0][index] + lists[1][index]))
        scores = [
            sum(
                slow_log_probability(t, source, text, backwards)
                for t, backwards in zip(translators, (False, True))
            )
            for text in union
        ]
        best = max(range(len(union)), key=scores.__getitem__)
        score, text = found[index]
        assert text == union[best]
        assert score == pytest.approx(scores[best], abs=1e-4)
        changed += text != lists[0][index][0]
    assert changed, "reranking must matter for this test to say something"


@pytest.mark.parametrize("direction", ["l2r", "r2l"])
def test_each_teacher_proposes_all_of_its_beam(data, teachers, tmp_path, direction):
    """And not the best one, with what had finished by the time it was sure."""
    paths = [str(path) for path in teachers]
    words = [str(data), "--cpu", "--max-len-b", "12", "--lenpen", "0", "--beam", "8"]
    joined = reranking.Reranker(words, *paths)
    place = ("l2r", "r2l").index(direction)
    teacher = (joined, joined.r2l)[place]
    own = ["--path", paths[place], "--sb-direction", direction]
    hasty = reranking.Translator([*words, *own])
    expected = n_best(data, paths[place], direction, 8, "--lenpen", 0)
    sources = texts.read_lines(put_sources(data, tmp_path))
    tokens, lengths = teacher.task.get_interactive_tokens_and_lengths(
        sources, lambda line: line
    )
    rows = teacher.task.build_dataset_for_inference(tokens, lengths)
    batch = rows.collater([rows[i] for i in range(len(sources))])

    def proposed(translator):
        lists = zip(batch["id"].tolist(), translator.search(batch))
        return {i: [translator.text(h) for h in found] for i, found in lists}

    assert proposed(teacher) == expected
    assert proposed(hasty) != expected, "a search for the best must not do as well"


@pytest.mark.parametrize("option", ["checkpoint_activations", "offload_activations"])
def test_a_teacher_trained_with_less_memory_scores_texts(
    data, teachers, tmp_path, option
):
    checkpoint = load(teachers[0])
    setattr(checkpoint["cfg"]["model"], option, True)
    torch.save(checkpoint, tmp_path / "model.pt")
    words = [str(data), "--path", str(tmp_path / "model.pt"), "--cpu"]
    (model,) = reranking.Translator([*words, "--sb-direction", "l2r"]).models
    check_scores_texts(model, "--l2r")


@pytest.mark.parametrize("short", [0, 1], ids=["l2r", "r2l"])
def test_each_teacher_writes_what_the_other_can_score(data, teachers, tmp_path, short):
    checkpoint = load(teachers[short])
    settings = checkpoint["cfg"]["model"]
    settings.max_source_positions, settings.max_target_positions = 9, 8
    paths = list(map(str, teachers))
    paths[short] = str(tmp_path / "model.pt")
    torch.save(checkpoint, paths[short])
    joined = reranking.Reranker([str(data), "--cpu"], *paths)
    assert joined.max_positions == (9, 8)
    for translator in joined, joined.r2l:
        assert translator.models[0].max_decoder_positions() == 8


def test_reranking_does_not_depend_on_batches(data, teachers, tmp_path):
    whole = reranked(data, teachers, tmp_path / "a")
    pieces = reranked(
        *(data, teachers, tmp_path / "b"), *("--max-tokens", 20, "--shard-size", 5)
    )
    assert {i: text for i, (_, text) in whole.items()} == {
        i: text for i, (_, text) in pieces.items()
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--path", "x.pt"], "--path is not for reranking: give --l2r and --r2l"),
        (["--sb-direction=l2r"], "--sb-direction is not for reranking"),
        (["--l2r", "a.pt:b.pt"], "--l2r must be one checkpoint, but is a.pt:b.pt"),
    ],
)
def test_reranking_refuses(data, teachers, tmp_path, words, message):
    with pytest.raises(ValueError, match=message):
        reranked(data, teachers, tmp_path, *words)


@pytest.mark.parametrize(("place", "other"), [(0, "r2l"), (1, "l2r")])
def test_a_teacher_of_the_other_direction_is_refused(
    data, teachers, tmp_path, place, other
):
    flag, own = ("--l2r", "--r2l")[place], ("l2r", "r2l")[place]
    message = f"{flag} must be a teacher .*{own}, but .* was trained with {other}"
    with pytest.raises(ValueError, match=message):
        reranked(data, [teachers[1 - place]] * 2, tmp_path)
    missing = [teachers[0], tmp_path / "none.pt"]
    with pytest.raises(OSError, match=r"none.pt"):
        reranked(data, missing, tmp_path)
