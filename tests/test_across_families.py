"""What holds of every family, each with a twin that fails, and what of some alone."""

import copy
from argparse import Namespace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from commands import TWO_WAY, load, run_train
from fairseq.modules import SinusoidalPositionalEmbedding
from helpers import (
    enat_model,
    fake_task,
    live_of,
    rnn_model,
    transformer,
    two_way_model,
    written,
)
from nets import (
    EXACT,
    FAMILIES,
    LENGTHS,
    PAD,
    VARIANTS,
    answers_of,
    batch,
    by_sentence,
    criterion_of,
    inputs,
    variants,
)
from steps import call

from sbnmt_plugin.families.abd.decoder import ReverseAttention
from sbnmt_plugin.families.abd.model import ABDTransformerModel
from sbnmt_plugin.families.ba.attention import HistoryAttention
from sbnmt_plugin.families.ba.decoder import RNNEncoder, RNNState
from sbnmt_plugin.families.ba.model import RNNSearchModel
from sbnmt_plugin.families.enat import decoder as enat_decoder
from sbnmt_plugin.families.enat.model import ENATModel
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.families.two_way import decoder as two_way_axes
from sbnmt_plugin.families.two_way.decoder import GridState
from sbnmt_plugin.families.two_way.model import TwoWayModel, transpose_weights
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.tools.commands import average
from sbnmt_plugin.tools.word_alignment import attention_of

pytestmark = pytest.mark.usefixtures("float64_fairseq")
TRANSFORMERS = [name for name in FAMILIES if name.startswith(("sb", "abd", "enat"))]


# a search in the midst of a training


def tables(model):
    """Tables of positions, which fairseq makes anew where they are too short."""
    kind = SinusoidalPositionalEmbedding
    return [x for x in model.modules() if isinstance(x, kind)]


def of_inference(answers):
    """Tensors of hypotheses that may not be changed in place, as fairseq does."""
    values = [x for own in answers for answer in own for x in answer.values()]
    tensors = [x for x in values if isinstance(x, torch.Tensor)]
    assert tensors
    return [x for x in tensors if x.is_inference()]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_search_leaves_ordinary_tensors_and_a_model_that_trains(name):
    model = FAMILIES[name]()
    twin = copy.deepcopy(model)
    for table in tables(model):
        table.weights = table.weights[:PAD]
    answers = answers_of(model)
    assert not of_inference(answers)
    assert all(len(x.weights) > PAD for x in tables(model))
    found, expected = gradients(model), gradients(twin)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, **EXACT)
    alone = of(inputs(model), [0])  # without padding masks are used as they are
    sum(x.sum() for own in by_sentence(model.eval(), alone) for x in own).backward()


def test_tensors_of_inference_are_noticed():
    with torch.inference_mode():
        answers = answers_of(FAMILIES["sb tanh"]())
    assert of_inference(answers)


# padding


def of(net_input, chosen, before=0, behind=0, steps=0):
    """Choose sentences, and pad source and target by so much more."""
    found = {}
    for name, x in net_input.items():
        rows = x.unflatten(0, (len(LENGTHS), -1))[chosen].flatten(0, 1)
        if rows.dim() == 2:
            rows = rows[:, rows.ne(PAD).any(0)]
            sides = (before, behind) if name == "src_tokens" else (0, steps)
            rows = F.pad(rows, sides, value=PAD)
        found[name] = rows
    return found


@torch.no_grad()
def assert_padding_is_inert(model):
    """More padding, on any side, and other company change nothing."""
    given = inputs(model)
    together = by_sentence(model, given)
    cases = [([2, 0, 1], 2, 0, 3), *(([b], 0, 0, 0) for b in range(3))]
    cases += [([b], *sides, 3) for b in range(3) for sides in ((0, 3), (2, 0))]
    for chosen, *padding in cases:
        found = by_sentence(model, of(given, chosen, *padding))
        for ours, b in zip(found, chosen, strict=True):
            for one, other in zip(ours, together[b], strict=True):
                torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.parametrize("name", VARIANTS)
def test_padding_and_company_change_nothing(name):
    assert_padding_is_inert(VARIANTS[name]())


def blind_to(memory):
    """Leave the mask on a memory of a Transformer's decoder out."""
    right = AttentionGrid.memory_mask

    def blind(self, name, padding, dtype, heads):
        return None if name == memory else right(self, name, padding, dtype, heads)

    return AttentionGrid, "memory_mask", blind


def moved_columns():
    """Leave states where the packed GRU has put them, as in fairseq's LSTM."""
    right = RNNEncoder.forward

    def moved(self, src_tokens, src_lengths=None, **others):
        found = right(self, src_tokens, src_lengths, **others)
        padding = found["encoder_padding_mask"][0]
        order = padding.byte().sort(dim=1, stable=True).indices
        states = found["encoder_out"][0].transpose(0, 1)
        states = states.gather(1, order[..., None].expand_as(states))
        return {
            "encoder_out": [states.transpose(0, 1)],
            "encoder_padding_mask": [padding.gather(1, order)],
        }

    return RNNEncoder, "forward", moved


def unmasked_history():
    right = HistoryAttention.read
    return (
        HistoryAttention,
        "read",
        lambda self, states, padding: right(self, states, torch.zeros_like(padding)),
    )


def unmasked_maximum():
    return two_way_axes, "masked_maximum", lambda grid, _, dim: grid.max(dim).values


def unmasked_input():
    right = enat_decoder.stretch_weights
    return (
        enat_decoder,
        "stretch_weights",
        lambda read, *others: right(torch.ones_like(read), *others),
    )


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("sb tanh", partial(blind_to, "source")),
        ("abd", partial(blind_to, "source")),
        ("abd", partial(blind_to, "reverse")),
        ("abd", lambda: (ReverseAttention, "memory", "source")),
        ("ba both", moved_columns),
        ("ba both", unmasked_history),
        ("two-way", unmasked_maximum),
        ("enat phrase", unmasked_input),
    ],
)
def test_the_padding_check_can_fail(name, fault, monkeypatch):
    """One mask for both memories of ABD-NMT is a fault, too."""
    monkeypatch.setattr(*fault())
    with pytest.raises((AssertionError, RuntimeError)):
        assert_padding_is_inert(FAMILIES[name]())


# logits of live places alone


@pytest.mark.parametrize("name", [*variants("sb"), *variants("abd")])
def test_live_logits_are_the_logits(name):
    """They come step by step, and there stream by stream."""
    model = VARIANTS[name]()
    net = inputs(model)
    prev = net["prev_output_tokens"]
    everything, _ = model(**net)
    live, _ = model(**net, live=live_of(prev))
    expected = everything.transpose(0, 1)[prev.ne(PAD).t()]
    torch.testing.assert_close(live, expected, **EXACT)


# step by step, with what is kept


WRITERS = {
    "transformer": transformer,
    **{name: make for name, make in FAMILIES.items() if name[:2] in ("ba", "tw")},
}


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", WRITERS)
@torch.no_grad()
def test_a_step_with_what_is_kept_is_the_teacher_forced_one(name, beam):
    """While ranks really change and a sentence leaves; attention likewise."""
    model = WRITERS[name]()
    looks = name != "two-way"
    for one, prefix, lprobs, looked in written(model, beam, weights=looks):
        words = one[one.ne(PAD)][None]
        logits, extra = model(words, torch.tensor([words.size(1)]), prefix[None])
        torch.testing.assert_close(lprobs, logits[0, -1].log_softmax(-1), **EXACT)
        if looked is not None:
            alpha = extra["attn"][0][0, -1]
            # fairseq's weights are float32
            torch.testing.assert_close(looked[one.ne(PAD)], alpha, rtol=0, atol=1e-6)


def stale(kept):
    """Let a part of a state not follow the hypotheses to which it belongs."""
    kind = RNNState if kept == "histories" else GridState
    right = kind.select

    def wrong(self, rows):
        before = self.histories if kept == "histories" else self.z
        if kept == "cache":
            self.axis = torch.nn.Identity()
            self.axis.reorder_incremental_state_scripting = lambda *given: None
        right(self, rows)
        if kept == "histories":
            self.histories = [x[: len(rows) // self.layout.beam] for x in before]
        if kept == "z":
            self.z = before[: len(rows)]

    return kind, "select", wrong


@pytest.mark.parametrize(
    ("name", "kept"), [("ba both", "histories"), ("two-way", "z"), ("two-way", "cache")]
)
def test_what_does_not_follow_its_parent_is_noticed(name, kept, monkeypatch):
    monkeypatch.setattr(*stale(kept))
    with pytest.raises((AssertionError, RuntimeError)):
        test_a_step_with_what_is_kept_is_the_teacher_forced_one(name, 3)


# gradients


def gradients(model):
    """Return those of a training step, by parameter; None where there is none."""
    loss, _, _ = criterion_of(model)(model.train(), batch(model))
    loss.backward()
    return {name: x.grad for name, x in model.named_parameters()}


NOISE = {"quant_noise_pq": 0.1, "quant_noise_pq_block_size": 1}


@pytest.mark.parametrize(
    "make",
    [*VARIANTS.values(), *(partial(VARIANTS[x], **NOISE) for x in TRANSFORMERS)],
    ids=[*VARIANTS, *(f"{name} noise" for name in TRANSFORMERS)],
)
def test_no_parameter_is_idle(make):
    """DDP fails on parameters without a gradient, but for those that are frozen.

    A softmax ignores what a bias adds to all keys alike.
    """
    model = make()
    for name, gradient in gradients(model).items():
        assert (gradient is None) != model.get_parameter(name).requires_grad, name
        keys = name.endswith("k_proj.bias")
        assert gradient is None or keys or gradient.abs().max() > 1e-10, name


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_activation_checkpoints_change_no_gradient(name):
    plain, saving = FAMILIES[name](), FAMILIES[name](checkpoint_activations=True)
    saving.load_state_dict(plain.state_dict())
    expected = gradients(plain)
    for own, gradient in gradients(saving).items():
        torch.testing.assert_close(gradient, expected[own], **EXACT)


NARROW = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_half_precision_trains_and_has_finite_scores(name, dtype):
    """What --fp16 and --bf16 do to a model."""
    model = FAMILIES[name]().to(dtype)
    assert all(x.isfinite().all() for x in gradients(model).values())
    for hypotheses in answers_of(model.eval()):
        assert all(bool(h["score"].isfinite()) for h in hypotheses)


# what is refused


@pytest.mark.parametrize(
    "kind",
    [SBTransformerModel, ABDTransformerModel, RNNSearchModel, ENATModel, TwoWayModel],
)
def test_another_task_is_refused(kind):
    args = Namespace(share_all_embeddings=True)
    with pytest.raises(ValueError, match=f"an {kind.family} needs the tags <l2r> and"):
        kind.build_model(args, fake_task(tags=False))


# by fairseq's commands, and ours


ONE = ["--max-epoch", 1, "--no-epoch-checkpoints"]


def test_who_writes_all_words_at_once_is_told_apart():
    with pytest.raises(ValueError, match=r"--path must be .* but enat_transformer wr"):
        attention_of(enat_model(), {}, 1)
    for model in rnn_model(), two_way_model():
        assert not said(model, "writes_at_once")


def test_models_of_other_kinds_have_no_mean(data, tmp_path):
    words = [*TWO_WAY, "--max-source-positions", 20, *ONE]
    paths = [run_train(data, tmp_path / "ahead", *words)]
    state = load(paths[0])
    state["cfg"]["model"].two_way_languages = ["de", "en"]
    paths.append(tmp_path / "back.pt")
    torch.save(state, paths[1])
    with pytest.raises(ValueError, match="average checkpoints of one training"):
        call(average, "--output", tmp_path / "mean.pt", *paths)
    call(average, "--output", tmp_path / "mean.pt", paths[0], paths[0])


def test_a_model_is_turned_round_once():
    model = two_way_model()
    turned = {name: value.clone() for name, value in model.state_dict().items()}
    transpose_weights(turned)
    model.exchanged = True
    model.load_state_dict(turned)
    own = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(model.state_dict())
    for name, value in model.state_dict().items():
        assert value.equal(own[name]), name
