"""PyTorch: the same values, gradients and chains as the same function written in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.errors import GradientError, TargetError
from steppe.interop import from_torch
from steppe.run.storage.identity import identify_target

torch = pytest.importorskip("torch", reason="PyTorch is not in the lock: its build depends on the machine")

NUM_SITES = 12
PAIRS = np.triu(np.random.default_rng(0).normal(size=(NUM_SITES, NUM_SITES)), 1)
DOMAINS = {
    "binary": steppe.Binary(NUM_SITES),
    "ordinal": steppe.Ordinal(NUM_SITES, [0.0, 0.5, 2.0]),
    "categorical": steppe.Categorical(4, [2, 3, 3, 2]),
}


def quadratic(pairs):
    """Return a batched quadratic form in PyTorch."""
    matrix = torch.as_tensor(pairs)

    def log_density(batch):
        flat = batch.reshape(len(batch), -1)
        return torch.einsum("ni,ij,nj->n", flat, matrix.to(flat.dtype), flat)

    return log_density


def native(domain):
    pairs = jnp.asarray(PAIRS)
    return steppe.Target(lambda x: x.reshape(-1) @ pairs @ x.reshape(-1), domain)


@pytest.fixture
def process_in_float64():
    """Double precision in every thread: callbacks run in one that does not see the context manager."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_value_and_gradient_are_those_of_the_native_target(domain, process_in_float64):
    theirs, ours = from_torch(quadratic(PAIRS), domain), native(domain)
    positions = domain.draw(jax.random.key(1), (5,))
    expected_value, expected_gradient = jax.jit(jax.vmap(ours.value_and_grad))(positions)
    for evaluate in (theirs.value_and_grad, jax.value_and_grad(theirs.log_density)):
        value, gradient = jax.jit(jax.vmap(evaluate))(positions)
        np.testing.assert_allclose(value, expected_value, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-6)


@jax.jit
def chains(sampler, key):
    def advance(states, key):
        states, _ = jax.vmap(sampler.step)(jax.random.split(key, 3), states)
        return states, states.position

    starts = jax.vmap(sampler.init)(sampler.target.domain.draw(key, (3,)))
    return jax.lax.scan(advance, starts, jax.random.split(key, 100))[1]


def positions_of(target):
    return chains(steppe.dmala().build(target), jax.random.key(2))


def test_chains_are_those_of_the_native_target_draw_by_draw(process_in_float64):
    # Rounding differs in the last of 53 bits, so a different decision has a chance of about 1e-12.
    domain = DOMAINS["binary"]
    theirs, ours = positions_of(from_torch(quadratic(PAIRS), domain)), positions_of(native(domain))
    assert len(np.unique(np.asarray(ours).reshape(-1, NUM_SITES), axis=0)) > 10
    np.testing.assert_array_equal(theirs, ours)


def test_nested_batches_reach_torch_as_one_call():
    sizes = []
    function = quadratic(PAIRS)

    def counting(batch):
        sizes.append(len(batch))
        return function(batch)

    target = from_torch(counting, DOMAINS["binary"])
    sizes.clear()
    positions = target.domain.draw(jax.random.key(0), (4, 3))
    jax.block_until_ready(jax.jit(jax.vmap(jax.vmap(target.value_and_grad)))(positions))
    assert sizes == [12]


def test_module_is_evaluated_in_its_own_precision_and_keeps_its_gradients_empty():
    module = torch.nn.Sequential(
        torch.nn.Linear(NUM_SITES, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()
    target = from_torch(module.eval(), DOMAINS["binary"], device="cpu")
    position = target.domain.draw(jax.random.key(0))
    value, gradient = target.value_and_grad(position)
    assert value.dtype == gradient.dtype == jnp.float32
    expected = module(torch.as_tensor(np.array(position, float))[None])[0, 0]
    np.testing.assert_allclose(value, expected.item(), rtol=1e-6)
    assert all(parameter.grad is None for parameter in module.parameters())


def test_two_functions_are_told_apart_by_their_values():
    domain = DOMAINS["binary"]
    first, again, other = (
        identify_target(from_torch(quadratic(pairs), domain), uses_gradient=True)
        for pairs in (PAIRS, PAIRS, 2 * PAIRS)
    )
    assert first == again
    assert first.log_density != other.log_density


def with_dropout():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(NUM_SITES, 1)).train()


WEIGHT = torch.ones(1, requires_grad=True)
REFUSED = {
    "one value for all": (lambda x: x.sum(), TargetError, r"one log-density per row, shape \(3,\).*\(\)"),
    "values per site": (lambda x: x, TargetError, r"got Tensor of shape \(3, 12\)"),
    "a number": (lambda x: 1.0, TargetError, "got float of shape"),
    "single position": (lambda x: x @ torch.ones(5), TargetError, "failed on a batch.*torch.vmap"),
    "leaves PyTorch": (lambda x: torch.as_tensor(x.numpy().sum(-1)), TargetError, "operations of PyTorch"),
    "detached": (lambda x: x.detach().sum(-1), GradientError, "graph is broken"),
    "comparison": (lambda x: (x == 1).float().sum(-1), GradientError, "graph is broken"),
    "comparison times weight": (lambda x: WEIGHT * (x == 1).sum(-1), GradientError, "graph is broken"),
    "no function": (3, TargetError, "needs a function; got int"),
    "training mode": (with_dropout(), TargetError, r"module.eval\(\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    function, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        from_torch(function, DOMAINS["binary"])


@pytest.mark.slow
def test_zero_gradient_is_found_by_the_audit():
    target = from_torch(lambda x: torch.round(x).sum(-1), DOMAINS["binary"])
    with pytest.raises(GradientError, match="exactly zero"):
        steppe.audit_gradient(target, jax.random.key(0))
