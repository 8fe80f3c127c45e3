"""Large float32 products by oneDNN where torch's own are slow: the same results."""

import copy

import pytest
import torch
from commands import ABD, SB, best, load, run_generate, run_train

from sbnmt_plugin import numerics
from sbnmt_plugin.network import cpu_products as precision
from sbnmt_plugin.network.cpu_products import PackedLinear, can_pack

needs_float32 = pytest.mark.skipif(
    not can_pack(torch.float32), reason="no products of oneDNN's here"
)


@pytest.fixture
def mkl_lags(monkeypatch):
    """A processor of another maker, on which every product is large enough."""
    monkeypatch.setattr(numerics, "mkl_lags", lambda: True)
    monkeypatch.setattr(precision, "MUCH", 1)


def assert_multiplies_as_torch(layer, rows):
    """Compare forward and backward passes: as near to float64's as torch's are."""
    own, exact = copy.deepcopy(layer), copy.deepcopy(layer).double()
    own.__class__ = PackedLinear
    found, expected = [], []
    for module, gathered in (own, found), (exact, expected):
        x = rows.clone().to(module.weight.dtype).requires_grad_()
        y = module(x)
        y *= 0.5  # in place, as fairseq's attention does
        (y * y.detach().cos()).sum().backward()
        gathered += [y, x.grad, *(p.grad for p in module.parameters())]
    for a, b in zip(found, expected):
        assert a.dtype == torch.float32 and a.shape == b.shape
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


SHAPES = [(7, 40), (3, 5, 40), (1, 40), (40,), (0, 40)]


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_onednn_multiplies_as_torch_does(monkeypatch, shape, bias):
    called = counting(monkeypatch)
    torch.manual_seed(6)
    layer = torch.nn.Linear(40, 24, bias=bias)
    assert_multiplies_as_torch(layer, torch.randn(shape))
    assert len(called) == (0 if shape[0] == 0 else 1)


def counting(monkeypatch):
    """Shapes of the products that are oneDNN's."""
    called, forward = [], precision.Product.forward

    def counted(ctx, x, weight, bias):
        called.append((*x.shape, *weight.shape))
        return forward(ctx, x, weight, bias)

    monkeypatch.setattr(precision.Product, "forward", staticmethod(counted))
    return called


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_the_check_of_onednns_products_can_fail(monkeypatch):
    layer, rows = torch.nn.Linear(40, 40), torch.randn(7, 40)
    right = precision.multiplied

    def forward_alone(x, weight, bias=None):
        found = right(x, weight, bias)
        return found if bias is not None else found.roll(1, -1)

    monkeypatch.setattr(precision, "multiplied", forward_alone)
    with pytest.raises(AssertionError):
        assert_multiplies_as_torch(layer, rows)


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_gradients_that_nobody_wants_are_not_made():
    layer = torch.nn.Linear(40, 24)
    layer.__class__ = PackedLinear
    layer.weight.requires_grad_(False)
    rows = torch.randn(7, 40)
    layer(rows).sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(layer.bias.grad, torch.full((24,), 7.0))


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_no_product_is_of_an_expanded_matrix(monkeypatch):
    """oneDNN takes minutes for what it does in milliseconds otherwise."""
    seen, right = [], precision.multiplied

    def noted(x, weight, bias=None):
        seen.extend(stride for y in (x, weight) for stride in y.stride())
        return right(x, weight, bias)

    monkeypatch.setattr(precision, "multiplied", noted)
    layer = torch.nn.Linear(40, 24)
    layer.__class__ = PackedLinear
    layer(torch.randn(7, 40, requires_grad=True)).sum().backward()
    assert len(seen) == 3 * 4 and 0 not in seen


def test_who_has_made_the_processor_decides(monkeypatch):
    lags = numerics.mkl_lags.__wrapped__
    makers = {"vendor_id: GenuineIntel": False, "vendor_id: AuthenticAMD": True}
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    for capability in "AVX512", "AVX2":
        monkeypatch.setattr(
            torch.backends.cpu, "get_cpu_capability", lambda found=capability: found
        )
        for maker, slow in makers.items():
            monkeypatch.setattr(numerics, "maker", lambda found=maker: found)
            assert lags() == (slow and capability == "AVX512")


def test_a_processor_names_its_maker():
    assert numerics.maker()


@needs_float32
@pytest.mark.parametrize(
    "family",
    [SB, ABD, ["--arch", "transformer_tiny", "--sb-direction", "r2l"]],
    ids=["sb", "abd", "teacher"],
)
def test_a_whole_training_may_be_onednns(monkeypatch, data, tmp_path, family):
    """The same weights and hypotheses, whoever multiplies."""
    words = [*family, "--max-epoch", 2, "--no-epoch-checkpoints"]
    called = counting(monkeypatch)
    monkeypatch.setattr(precision, "MUCH", 1)
    weights, answers, counts = [], [], []
    for lags in False, True:
        monkeypatch.setattr(numerics, "mkl_lags", lambda found=lags: found)
        path = run_train(data, tmp_path / str(lags), *words)
        weights.append(load(path)["model"])
        answers.append(best(run_generate(data, path, *family[2:])))
        counts.append(len(called))
    assert counts[0] == 0 and counts[1] > 100
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=0, atol=1e-3)
    for i, (score, text) in answers[0].items():
        assert answers[1][i][1] == text
        assert float(answers[1][i][0]) == pytest.approx(float(score), abs=1e-2)
