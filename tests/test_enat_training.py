"""ENAT's loss: min-max in one update, written out; what is logged and refused."""

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
from helpers import enat_model, live_of, sb_model
from nets import (
    EPSILON,
    EXACT,
    LAMBDA,
    LENGTHS,
    MU,
    STEPS,
    batch,
    criterion_of,
    inputs,
    map_model,
)

from sbnmt_plugin.families.enat import embedding_mapping as mapping

pytestmark = pytest.mark.usefixtures("float64_fairseq")


def slow_terms(model, net):
    """L_align and L_adv, sentence by sentence, word by word.

    Embeddings are plain numbers; W and f are the model's own parameters.
    """
    table = model.decoder.embed_scale * model.decoder.embed_tokens.weight.detach()
    weight, judge = model.mapping.map.weight, model.mapping.judge
    found = []
    for b, (places, steps) in enumerate(zip(LENGTHS, STEPS)):
        x = [weight @ table[i] for i in net["src_tokens"][b, -places:-1]]
        y = [table[i] for i in net["prev_output_tokens"][b, 1:steps]]
        gap = sum(x) / len(x) - sum(y) / len(y)
        align = (gap**2).sum().sqrt()
        f = [judge(v).sigmoid() for v in y], [judge(v).sigmoid() for v in x]
        adversary = sum(p.log() for p in f[0]) / len(y)
        adversary = adversary + sum((1 - p).log() for p in f[1]) / len(x)
        found.append((align, adversary[0]))
    return found


def parameters(model):
    """Names of W, of f, and of all others."""
    names = [name for name, _ in model.named_parameters()]
    w = [name for name in names if name == "mapping.map.weight"]
    f = [name for name in names if "judge" in name]
    return w, f, [name for name in names if name not in (*w, *f)]


def gradients(loss, model, names):
    own = dict(model.named_parameters())
    values = torch.autograd.grad(
        loss, [own[name] for name in names], retain_graph=True, allow_unused=True
    )
    return dict(zip(names, values))


def assert_terms_are_min_max(model):
    """W goes down μ L_align + λ L_adv, f goes up L_adv, and nothing else moves."""
    net = inputs(model)
    terms = model(**net, with_terms=True)[1]["terms"]
    slow = slow_terms(model, net)
    for term, (align, adversary) in zip(terms, slow):
        torch.testing.assert_close(term, MU * align - adversary, **EXACT)
    factors = [1.0, -2.0, 0.5]  # sentences apart
    w, f, others = parameters(model)
    down = sum(k * (MU * a + LAMBDA * b) for k, (a, b) in zip(factors, slow))
    up = sum(-k * b for k, (_, b) in zip(factors, slow))
    loss = (terms * torch.tensor(factors, dtype=torch.float64)).sum()
    found = gradients(loss, model, [*w, *f, *others])
    expected = {**gradients(down, model, w), **gradients(up, model, f)}
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **EXACT)
    assert not [name for name in others if found[name] is not None]


def test_one_update_is_min_max():
    assert_terms_are_min_max(map_model())


@pytest.mark.parametrize("cut", ["detach", "turn"])
def test_the_check_of_min_max_can_fail(cut, monkeypatch):
    """Embeddings that move, or a gradient that is not turned round."""
    model = map_model()
    if cut == "turn":

        class Straight:
            apply = staticmethod(lambda x, factor: x)

        monkeypatch.setattr(mapping, "GradMultiply", Straight)
    else:
        monkeypatch.setattr(torch.Tensor, "detach", lambda self: self)
    with pytest.raises(AssertionError):
        assert_terms_are_min_max(model)


def test_the_loss_is_the_sum_of_equation_10():
    """Each label carries its sentence's terms; without them it is cross-entropy."""
    model = map_model()
    given = batch(model)
    loss, size, _ = criterion_of(model)(model, given)
    scores, extra = model(**given["net_input"], with_terms=True)
    lprobs, plain = scores.log_softmax(-1), 0
    for b, steps in enumerate(STEPS):
        for row, label in zip(lprobs[b, :steps], given["target"][b]):
            each = EPSILON / (len(row) - 1)
            plain = plain - (1 - EPSILON - each) * row[label] - each * row.sum()
    terms = sum(steps * x for steps, x in zip(STEPS, extra["terms"]))
    torch.testing.assert_close(loss, plain + terms, **EXACT)
    assert size == sum(STEPS)
    validated = criterion_of(model).eval()(model, given)[0]
    torch.testing.assert_close(validated, plain, **EXACT)


def test_the_loss_does_not_depend_on_how_batches_are_divided():
    model = map_model()
    given = batch(model)
    whole = criterion_of(model)(model, given)[0]
    parts = 0
    for b in range(3):
        net = {k: v if v is None else v[[b]] for k, v in given["net_input"].items()}
        net["prev_output_tokens"] = net["prev_output_tokens"][:, : STEPS[b]]
        one = {
            "net_input": net,
            "target": given["target"][[b], : STEPS[b]],
            "live": live_of(net["prev_output_tokens"]),
            "stream_lengths": [STEPS[b]],
            "ntokens": STEPS[b],
            "nsentences": 1,
        }
        parts = parts + criterion_of(model)(model, one)[0]
    torch.testing.assert_close(whole, parts, **EXACT)


def test_a_map_without_its_terms_is_refused():
    """By another criterion; it may still be validated by one."""
    model = map_model()
    logits, extra = model.eval()(**inputs(model))
    assert logits.isfinite().all() and not extra
    with pytest.raises(ValueError, match="add it"):
        model.train()(**inputs(model))


def test_another_family_is_refused():
    with pytest.raises(ValueError, match="--criterion enat_cross_entropy is for"):
        criterion_of(enat_model())(sb_model(), {})


class Distributed(torch.nn.Module):
    """What fairseq puts around a model for several processes."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, **given):
        return self.module(**given)


def test_a_model_of_several_processes_is_known_through_its_wrappers():
    model = map_model()
    wrapped = ModuleProxyWrapper(Distributed(model))
    given = batch(model)
    losses = [criterion_of(model)(each, given)[0] for each in (model, wrapped)]
    torch.testing.assert_close(*losses, rtol=0, atol=0)
