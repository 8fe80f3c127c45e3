"""Many lines through the doors of a trained model, and very long ones."""

import gc
import random
import sys
import weakref

import commands
import pytest
from commands import lines, run_interactive
from fairseq.tasks.fairseq_task import FairseqTask

from campaign import soak
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.task import SBTranslationTask

ENOUGH = soak.ENOUGH


def test_a_short_round_keeps_every_answer(data, trained, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "WORDS", commands.WORDS)
    monkeypatch.setattr(soak, "POOL", 60)
    attempt = soak.Soak(tmp_path, 1, 150)
    attempt.stage.data, attempt.model = data, trained.parent
    for row in attempt.rows():
        assert row["lines"] == 150 and not row["faults"]
        assert row["different answers"] > 30  # so that exchanged ones would be seen


def test_lines_have_all_lengths_and_many_scripts():
    found = soak.pool(random.Random(1))
    assert {len(line.split()) for line in found} >= {0, 1, soak.LONGEST - 1}
    assert max(len(line.split()) for line in found) < soak.LONGEST + 1
    assert len(set(found)) > soak.POOL * 0.9
    assert not any("\n" in line or "\r" in line for line in found)


# answers lines 0 … n - 1 in a way that a changed line breaks; long lines fill the pipe,
# so that the program is not at its end before its memory is measured
ANSWERS = """
import sys
kept, numbers = [], list(range(int(sys.argv[1])))
{prepare}
for i in numbers:
    text = str(i % 7)
    {change}
    print(f"H-{{i}}\\t{{'0' * 200}}\\t{{text}}")
"""
TWINS = {
    "as it should be": ("", "", None),
    "it keeps something of every line": ("", "kept.append('x' * 2000 + text)", "grows"),
    "a line has no answer": ("numbers.remove(11)", "", "9999 answers to 10000"),
    "a line has two": ("numbers.insert(11, 10)", "", "not in the order"),
    "two lines change places": ("numbers[3:5] = 4, 3", "", "not in the order"),
    "two answers change places": (
        "",
        "text = {3: '4', 4: '3'}.get(i, text)",
        "line 10",
    ),
    "it ends with an error": ("", "if i == 9999: sys.exit(3)", "status 3"),
}


@pytest.mark.parametrize("twin", TWINS)
def test_what_is_lost_is_found(twin, tmp_path):
    prepare, change, wanted = TWINS[twin]
    program = ANSWERS.format(prepare=prepare, change=change)
    words = [sys.executable, "-c", program, str(ENOUGH)]
    found = soak.flow(words, ENOUGH, tmp_path / "log")
    faults = soak.judged([str(i % 7) for i in range(ENOUGH)], found, {})
    assert wanted in " ".join(faults) if wanted else not faults


@pytest.mark.parametrize("keeps", [False, True])
def test_lines_that_are_answered_are_forgotten(keeps, data, trained, monkeypatch):
    """fairseq's own rule, the twin, keeps the batches of every line."""
    if keeps:
        rule = FairseqTask.can_reuse_epoch_itr
        monkeypatch.setattr(SBTranslationTask, "can_reuse_epoch_itr", rule)
    build, made, alive = SBTranslationTask.build_dataset_for_inference, [], []

    def counted(*args, **options):
        gc.collect()
        alive.append(sum(reference() is not None for reference in made))
        dataset = build(*args, **options)
        made.append(weakref.ref(dataset))
        return dataset

    monkeypatch.setattr(SBTranslationTask, "build_dataset_for_inference", counted)
    run_interactive(data, trained, "w1\nw2\nw3\nw4\n")
    assert alive == ([0, 1, 2, 3] if keeps else [0, 0, 0, 0])


LIMIT = 1024  # of the model, </s> included
LONG = " ".join(["w2"] * (LIMIT - 1))
BATCHES = {
    "one": ("--batch-size", 1),
    "largest": ("--max-tokens", 2**63 - 1, "--buffer-size", 3),
    "just enough": ("--max-tokens", LIMIT, "--buffer-size", 3),
}


@pytest.mark.parametrize("batch", BATCHES)
def test_the_longest_line_is_answered_in_any_batch(batch, data, trained):
    words = (*BATCHES[batch], "--max-len-b", 9)
    found = lines(run_interactive(data, trained, f"w1\n{LONG}\n\n", *words), "H")
    assert list(found) == [0, 1, 2] and all(len(rows) == 1 for rows in found.values())


@pytest.mark.parametrize(
    "line, words, named",
    [
        (
            LONG,
            ("--max-tokens", LIMIT - 1),
            f"at most {LIMIT - 1} tokens .*but one has {LIMIT}: raise --max-tokens",
        ),
        (f"{LONG} w2", (), f"at most {LIMIT} tokens .*but one has {LIMIT + 1}"),
    ],
)
def test_what_is_too_long_is_refused_by_name(line, words, named, data, trained):
    with pytest.raises(ValueError, match=named):
        run_interactive(data, trained, f"{line}\n", *words)


def test_in_python_a_line_may_be_longer_than_a_batch_of_the_training(data, trained):
    folders = str(trained.parent), trained.name, str(data)
    hub = SBTransformerModel.from_pretrained(*folders, num_workers=0)
    assert hub.models[0].max_positions()[0] == LIMIT
    assert len(hub.translate(["w1", LONG, ""], max_len_b=9)) == 3
    with pytest.raises(ValueError, match=f"one has {LIMIT + 1}: leave out what"):
        hub.translate(["w1", f"{LONG} w2"])
    with pytest.raises(ValueError, match="skip_invalid_size_inputs must not be given"):
        hub.translate(["w1", f"{LONG} w2"], skip_invalid_size_inputs=True)
    hub = SBTransformerModel.from_pretrained(*folders, num_workers=0, max_tokens=500)
    with pytest.raises(ValueError, match="at most 500 tokens"):  # the twin
        hub.translate([LONG])
