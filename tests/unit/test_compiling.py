"""What is made once is the same array, and is made once."""

import re
import stat

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import compiling
from steppe.compiling import materialize, materialize_words
from steppe.numerics import total
from steppe.random import draws
from steppe.random.draws import WordPairs
from steppe.random.threefry import unroll, word_pairs
from steppe.targets import ising_lattice
from steppe.targets.bonds import LatticeBonds

PLACES = jnp.arange(300, dtype=jnp.uint32)
KEYS = jax.random.split(jax.random.key(5), 7)


def drawn(key):
    return materialize_words(word_pairs, unroll(key), PLACES)


def plain(key):
    return word_pairs(unroll(key), PLACES)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_materialize_words_are_the_same_bits(mapped, compiled):
    # About one word in 256 is the pattern of a NaN, which must come through as it is.
    found, expected = drawn, plain
    if mapped:
        found, expected = jax.vmap(found), jax.vmap(expected)
    if compiled:
        found = jax.jit(found)
    key = KEYS if mapped else KEYS[0]
    np.testing.assert_array_equal(found(key), expected(key))


def test_signalling_nans_and_zeros_come_through():
    patterns = np.array([0x7F800001, 0xFFBFFFFF, 0x7FC00000, 0x80000000, 0, 0xFFFFFFFF], np.uint32)
    first, second = jax.jit(lambda words: materialize_words(lambda w: (w, ~w), words))(patterns)
    np.testing.assert_array_equal(first, patterns)
    np.testing.assert_array_equal(second, ~patterns)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="asks how XLA compiles for a CPU")
def test_a_block_that_serves_two_arrays_is_computed_in_one_loop():
    def flips_and_normals(key):
        pairs = WordPairs.draw(key, 300)
        return draws.flips(pairs, jnp.ones(300)), draws.normal(pairs, (300,))

    def rounds(program) -> int:
        text = jax.jit(jax.vmap(program)).lower(KEYS).compile().as_text() or ""
        return len(re.findall(r"= u32\[7,300\]\S* xor\(", text))

    apart = lambda key: (draws.flips(key, jnp.ones(300)), draws.normal(key, (300,)))  # noqa: E731
    assert rounds(flips_and_normals) == 20
    assert rounds(apart) > 30


@pytest.mark.parametrize("size", [5, 300])
def test_drawn_pairs_stand_in_for_their_key(size):
    key, pairs = KEYS[1], jax.jit(WordPairs.draw, static_argnums=1)(KEYS[1], size)
    for shape in [(size,), (size, 1), (3,), ()]:
        np.testing.assert_array_equal(draws.uniform(pairs, shape), draws.uniform(key, shape))
        np.testing.assert_array_equal(draws.normal(pairs, shape), draws.normal(key, shape))


def test_an_array_materialize_is_differentiated_and_mapped_like_any_other():
    square = lambda x: materialize(lambda x: x * x, x)  # noqa: E731
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(square)))(x), 2 * x)
    np.testing.assert_array_equal(square(x), x * x)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="asks how XLA compiles for a CPU")
@pytest.mark.parametrize("make", [total, LatticeBonds(0.3, (4, 5), True).sums], ids=["sum", "neighbours"])
@pytest.mark.parametrize("num_chains", [1, 3])
def test_sums_keep_a_loop_of_their_own(make, num_chains):
    values = jnp.ones((num_chains, 20))
    text = jax.jit(jax.vmap(lambda row: make(jnp.exp(row) + row))).lower(values).compile().as_text() or ""
    assert re.search(r" call\(.*inlineable=\"false\"", text)


def test_nothing_is_asked_of_other_devices(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    text = jax.jit(jax.vmap(drawn)).lower(KEYS).as_text()
    assert "inlineable" not in text
    assert "complex" not in text


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="asks how XLA compiles for a CPU")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_an_update_of_one_site_copies_no_state(scan):
    target = ising_lattice((8, 9), 0.4)
    sampler = steppe.gibbs(num_updates=72, scan=scan).build(target)
    state = sampler.init(target.domain.draw(KEYS[0]))
    text = jax.jit(sampler.step).lower(KEYS[1], state).compile().as_text() or ""
    # One copy is made before the loop, because the argument is not donated.
    assert len(re.findall(r"f32\[72\]\S* copy\(", text)) == 1


# ---- Programs kept on disk --------------------------------------------------------------------------------

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A user's cache directory and JAX's settings as they were before."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(compiling.CACHE_VARIABLE, raising=False)
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_are_kept_in_a_directory_that_only_the_user_reads(own_cache):
    directory = compiling.keep_programs()
    assert directory is not None
    assert directory.is_relative_to(own_cache)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert jax.config.values["jax_compilation_cache_dir"] == str(directory)
    assert 0 < jax.config.values["jax_compilation_cache_max_size"] <= 2**30
    directory.chmod(0o755)
    jax.config.update("jax_compilation_cache_dir", None)
    compiling.keep_programs()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_settings_of_the_user_win(own_cache, monkeypatch):
    jax.config.update("jax_compilation_cache_dir", str(own_cache / "mine"))
    assert compiling.keep_programs() is None
    assert jax.config.values["jax_compilation_cache_dir"] == str(own_cache / "mine")
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv(compiling.CACHE_VARIABLE, "off")
    assert compiling.keep_programs() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None
    monkeypatch.delenv(compiling.CACHE_VARIABLE)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 3.0)
    compiling.keep_programs()
    assert jax.config.values["jax_persistent_cache_min_compile_time_secs"] == 3.0


def test_without_a_place_to_write_nothing_is_kept(own_cache, monkeypatch):
    (own_cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache / "file"))
    assert compiling.keep_programs() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_another_jaxlib_and_another_processor_have_directories_of_their_own(own_cache, monkeypatch):
    here = compiling.find_program_directory()
    monkeypatch.setattr(compiling.jaxlib.version, "__version__", "0.0.0")
    assert compiling.find_program_directory() != here
