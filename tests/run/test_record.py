"""What a run directory says of itself outlives renames, terminals, callbacks and versions, or is refused."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from resealing import change_run, read_lines
from small_runs import TARGET, digest, small_run

import steppe
from contract.cases import DOMAINS, RECIPES, target_on
from steppe.domain.from_json import make_domain
from steppe.errors import DamagedRunError, DomainError, RunMismatchError
from steppe.kernel.blocks.metropolis import ProposalBlock
from steppe.kernel.proposals.discrete_langevin import JointProposal
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.identity import (
    are_close,
    describe_component,
    describe_software,
    find_commit,
    find_other_software,
    identify_target,
    name_leaves,
)

HERE = Path(__file__).parent

# Ids in files. A row may be added; none may be changed or given to another component.
FROZEN_IDS = """
    center-langevin center-refresh conditional-draw cycle-block discrete-flow discrete-langevin gibbs-block
    gibbs-with-gradients informed-moves joint-proposal layerwise-gibbs-block metropolis no-coupling no-penalty
    path-auxiliary permutation-coupling proposal-block recipe replicas-block roughness-penalty
    site-gibbs-block star-coupling tempered-block unadjusted uniform-moves weighted-center-block
    logistic-coupling
"""
FROZEN_DOMAIN_IDS = {
    "binary": steppe.Binary(3),
    "spin": steppe.Spin(2),
    "ordinal": steppe.Ordinal(2, [0.0, 0.1, 2.5]),
    "categorical": steppe.Categorical(3, [2, 4, 3]),
    "permutation": steppe.Permutation(5),
}


# ---- domains and components --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FROZEN_DOMAIN_IDS)
def test_a_domain_comes_back_from_its_json(kind):
    domain = FROZEN_DOMAIN_IDS[kind]
    assert domain.to_json()["id"] == kind
    assert make_domain(domain.to_json()) == domain


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"id": "Binary", "shape": [3]},
        {"id": ["binary"], "shape": [3]},
        {"id": "binary"},
        {"id": "binary", "shape": 3},
        {"id": "binary", "shape": []},
        {"id": "binary", "shape": [0]},
        {"id": "binary", "shape": [True]},
        {"id": "binary", "shape": [10**13]},
        {"id": "binary", "shape": [3], "levels": [0.0, 1.0]},
        {"id": "ordinal", "shape": [3]},
        {"id": "ordinal", "shape": [3], "levels": "many"},
        {"id": "categorical", "shape": [3], "num_levels": [2, 2]},
        {"id": "permutation", "shape": [1]},
    ],
)
def test_a_description_that_is_no_domain_is_refused(description):
    with pytest.raises(DomainError):
        make_domain(description)


def all_ids(described) -> set[str]:
    """Every id inside a described component."""
    if isinstance(described, list):
        return set().union(*map(all_ids, described))
    if isinstance(described, dict):
        own = {described["id"]} if "id" in described else set()
        return own.union(*(all_ids(value) for value in described.values()))
    return set()


@pytest.mark.parametrize("name", RECIPES)
def test_every_component_of_a_recipe_has_an_id(name):
    sampler = RECIPES[name].build(target_on("binary"), audit=False)
    found = all_ids(describe_component(sampler.recipe))
    assert found
    assert found <= set(FROZEN_IDS.split())


def test_every_component_of_a_sampler_of_permutations_has_an_id():
    for recipe in (steppe.informed_permutation(coupling_variance=0.5), steppe.uniform_permutation()):
        assert all_ids(describe_component(recipe)) <= set(FROZEN_IDS.split())


@contextlib.contextmanager
def renamed(*kinds: type):
    names = [(kind.__name__, kind.__qualname__) for kind in kinds]
    try:
        for kind in kinds:
            kind.__name__ = kind.__qualname__ = "Renamed"
        yield
    finally:
        for kind, (name, qualified) in zip(kinds, names, strict=True):
            kind.__name__, kind.__qualname__ = name, qualified


def test_renaming_a_class_does_not_end_a_run(tmp_path):
    small_run(out=tmp_path / "run", num_draws=60)
    with renamed(ProposalBlock, JointProposal, type(TARGET.domain), type(TARGET)):
        assert digest(small_run(out=tmp_path / "run", resume=True)) == digest(small_run())


def test_leaves_of_chains_have_names(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    look = RunDirectory(tmp_path / "run").open()
    names = {column.name for column in look.journal.opening.chains}
    assert {"state.position", "state.center", "state.log_density"} <= names
    assert not any(name.startswith("leaf") for name in names)


def test_names_of_leaves_are_fit_for_files_and_different():
    tree = {"a/b": 1, "a b": 2, "../c": [3, (4,)], "": 5}
    names = name_leaves(tree)
    assert len(set(names)) == len(jax.tree.leaves(tree))
    assert all(name and not set(name) & set("/\\ ") for name in names)


# ---- the target --------------------------------------------------------------------------------------


def log_density(x):
    return 0.3 * jnp.sum(x) - 0.2 * x[0] * x[1]


def identity(function, domain=None, uses_gradient=True):
    target = steppe.Target(function, steppe.Binary(12) if domain is None else domain)
    return identify_target(target, uses_gradient=uses_gradient)


def test_a_target_is_known_again():
    assert identity(log_density) == identity(lambda y: 0.3 * jnp.sum(y) - 0.2 * y[0] * y[1])


def test_constants_that_no_fixed_state_sees_are_part_of_a_target():
    first, second = (identity(lambda x, c=c: jnp.sum(x) + c * jnp.prod(x)) for c in (0.1, 0.2))
    assert first.log_density == second.log_density
    assert first != second


def test_arrays_that_no_fixed_state_sees_are_part_of_a_target():
    def with_weights(weights):
        return identity(jax.tree_util.Partial(lambda w, x: jnp.sum(x) + w @ (jnp.prod(x) * x), weights))

    first, second = (with_weights(jnp.full(12, value)) for value in (0.1, 0.2))
    assert first.log_density == second.log_density
    assert first != second


@pytest.mark.parametrize("make", [np.full, jnp.full], ids=["numpy", "jax"])
def test_arrays_that_a_function_closes_over_are_part_of_a_target(make):
    def closing_over(weights):
        return identity(lambda x: jnp.sum(x) + weights @ (jnp.prod(x) * x))

    first, again, other = (closing_over(make(12, value)) for value in (0.1, 0.1, 0.2))
    assert first == again
    assert first.log_density == other.log_density
    assert first != other


@pytest.mark.parametrize("uses_gradient", [False, True])
def test_a_callback_is_known_by_its_values(uses_gradient):
    def calling(factor):
        @jax.custom_jvp
        def call(x):
            like = jax.ShapeDtypeStruct((), x.dtype)
            return jax.pure_callback(lambda x: (factor * np.sum(x)).astype(x.dtype), like, x)

        call.defjvp(lambda x, dx: (call(*x), factor * jnp.sum(dx[0])))
        return identity(call, uses_gradient=uses_gradient)

    first, again, other = calling(1.0), calling(1.0), calling(1.5)
    assert first == again
    assert first.log_density != other.log_density


def test_fixed_states_differ_and_values_that_are_not_finite_are_kept():
    found = identity(lambda x: jnp.where(x[0] > 0, jnp.log(x[1]), jnp.sum(x)), uses_gradient=False)
    assert "-inf" in found.log_density
    assert len(set(found.log_density)) > 4
    assert found.slope is None


@pytest.mark.parametrize("name", DOMAINS)
def test_the_identity_of_a_target_is_the_same_in_every_domain_and_call(name):
    assert identify_target(target_on(name), uses_gradient=True) == identify_target(
        target_on(name), uses_gradient=True
    )


def test_closeness_allows_rounding_and_nothing_else():
    values = [1.0, -200.0, "-inf"]
    assert are_close(values, [1.00001, -200.001, "-inf"], "float32")
    assert not are_close(values, [1.2, -200.0, "-inf"], "float32")
    assert not are_close(values, [1.00001, -200.001, "-inf"], "float64")
    assert not are_close(values, [1.0, -200.0, "nan"], "float32")
    assert not are_close(values, None, "float32")
    assert are_close(None, None, "float32")


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from small_runs import small_run
assert sys.stdout.isatty() == (sys.argv[3] == "terminal")
small_run(out=sys.argv[2], num_draws=60, progress=False)
"""


def test_a_run_started_in_a_terminal_is_resumed_from_a_pipe(tmp_path):
    leader, follower = pty.openpty()
    arguments = [sys.executable, "-c", PROGRAM, HERE, tmp_path / "run", "terminal"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    run = partial(subprocess.run, stdin=follower, stdout=follower, stderr=follower)
    run(list(map(str, arguments)), check=True, env=environment, timeout=300)
    os.close(leader)
    os.close(follower)
    assert not sys.stdout.isatty()
    assert digest(small_run(out=tmp_path / "run", resume=True)) == digest(small_run())


# ---- other versions ----------------------------------------------------------------------------------


def made_by_another_version(content, *, factor=1 + 1e-6):
    content["software"]["jax"] = "0.9.0"
    content["target"]["program"] = content["target"]["arrays"] = "0" * 64
    content["target"]["log_density"] = [factor * value for value in content["target"]["log_density"]]


def test_another_version_of_jax_is_refused_unless_allowed(tmp_path):
    small_run(out=tmp_path / "run", num_draws=60)
    change_run(tmp_path / "run", made_by_another_version)
    with pytest.raises(RunMismatchError, match=r"made with jax '0\.9\.0'.*allow_other_version"):
        small_run(out=tmp_path / "run", resume=True)
    resumed = small_run(out=tmp_path / "run", resume=True, allow_other_version=True)
    assert digest(resumed) == digest(small_run())


def test_another_target_is_refused_even_if_another_version_is_allowed(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    change_run(tmp_path / "run", lambda content: made_by_another_version(content, factor=1.01))
    with pytest.raises(RunMismatchError, match="another target"):
        small_run(out=tmp_path / "run", resume=True, allow_other_version=True)


@pytest.mark.parametrize(
    ("what", "value", "named"),
    [
        ("jaxlib", "0.9.0", "jaxlib '0.9.0'"),
        ("cpu", "x86_64 sse4_2", "the processor 'x86_64 sse4_2'"),
        ("device", "TPU v9", "the device 'TPU v9'"),
        ("xla_flags", "--xla_cpu_max_isa=SSE4_2", "XLA_FLAGS '--xla_cpu_max_isa=SSE4_2'"),
    ],
)
def test_what_changes_the_last_bit_is_refused_unless_allowed(tmp_path, what, value, named):
    small_run(out=tmp_path / "run", num_draws=20)
    change_run(tmp_path / "run", lambda content: content["software"].update({what: value}))
    with pytest.raises(RunMismatchError, match=f"made with {named}.*allow_other_version"):
        small_run(out=tmp_path / "run", resume=True)
    small_run(out=tmp_path / "run", resume=True, allow_other_version=True, num_draws=30)
    line = read_lines(tmp_path / "run")[-1]
    assert line["software"] == describe_software()


def test_flags_that_only_say_where_chains_run_do_not_matter():
    more = "--xla_force_host_platform_device_count=2 --xla_cpu_enable_fast_math=true"
    same = {"xla_flags": more}, {"xla_flags": "--xla_cpu_enable_fast_math=true"}
    assert find_other_software(*same) is None
    assert find_other_software({}, same[1]) == ("xla_flags", "", "--xla_cpu_enable_fast_math=true")


def test_values_that_differ_in_the_last_bit_name_the_processor(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)

    def round_otherwise(content):
        content["target"]["log_density"][3] *= 1 + 1e-7

    change_run(tmp_path / "run", round_otherwise)
    with pytest.raises(RunMismatchError, match=r"last bits.*allow_other_version"):
        small_run(out=tmp_path / "run", resume=True)
    small_run(out=tmp_path / "run", resume=True, allow_other_version=True, num_draws=30)


def test_the_record_names_what_the_last_bit_depends_on(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    software = RunDirectory(tmp_path / "run").record().software
    assert software["jaxlib"]
    assert software["cpu"]
    assert software.get("xla_flags", "") == os.environ.get("XLA_FLAGS", "").strip()


def test_the_commit_of_a_checkout_is_part_of_a_run_and_of_its_results(tmp_path):
    """With a `+` behind it where files differ from it, as they do while somebody works on them."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a checkout")
    head = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    run = small_run(out=tmp_path / "run")
    commit = json.loads((tmp_path / "run" / "run.json").read_text())["software"]["commit"]
    assert commit.rstrip("+") == head.stdout.strip()
    provenance = run.summary().present().provenance
    assert provenance.commit == commit
    assert provenance.cpu == describe_software()["cpu"]
    assert not {"commit", "cpu", "device"} & set(provenance.versions)


def test_a_commit_that_nobody_can_tell_is_left_out(monkeypatch):
    monkeypatch.setenv("PATH", "")
    find_commit.cache_clear()
    try:
        assert "commit" not in describe_software()
    finally:
        find_commit.cache_clear()


# ---- documents that are none -------------------------------------------------------------------------


def test_a_directory_of_format_1_is_refused_with_one_sentence(tmp_path):
    path = shutil.copytree(HERE / "fixtures" / "format-1", tmp_path / "run")
    sentence = r"format 1; this version of steppe reads format 2\. Read or continue it with the version"
    for use in (
        lambda: steppe.open_run(path),
        lambda: small_run(out=path, resume=True),
        lambda: steppe.merge_shards(path, tmp_path / "merged"),
    ):
        with pytest.raises(RunMismatchError, match=sentence):
            use()
    assert any("format 1" in problem for problem in RunDirectory(path).problems())


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("committed") / "run"
    small_run(out=path, num_draws=20)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("recipe"),
        lambda content: content.update(unknown=1),
        lambda content: content.update(num_chains="4"),
        lambda content: content.update(num_chains=True),
        lambda content: content.update(num_chains=10**30),
        lambda content: content.update(num_draws=2**32 - 1, thinning=1000),
        lambda content: content.update(thinning=0),
        lambda content: content.update(rungs=[1.0, 0.5]),
        lambda content: content.update(shard={"index": 3, "count": 2}),
        lambda content: content.update(shard={"index": 1, "count": 2}),
        lambda content: content.update(domain={"id": "binary", "shape": [10**13]}),
        lambda content: content.update(domain="Binary(4)"),
        lambda content: content.update(format=None),
        lambda content: content["target"].update(program="short"),
    ],
)
def test_a_sealed_document_that_describes_no_run_is_named(tmp_path, committed, change):
    path = shutil.copytree(committed, tmp_path / "run")
    change_run(path, change)
    assert any("run.json" in problem or "format" in problem for problem in RunDirectory(path).problems())
    with pytest.raises((DamagedRunError, RunMismatchError)):
        steppe.open_run(path)
