"""The adapter of Opacus: scores are inner products with noisy gradients, and all three designs audit a script."""

import importlib.util
import math
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit import training
from dpaudit.training import opacus

torch = pytest.importorskip("torch", reason="needs the extra `opacus`")
library = pytest.importorskip("opacus", reason="needs the extra `opacus`")

EXAMPLE = Path(__file__).parents[2] / "examples" / "opacus_digits.py"
RATE = 1e-3  # small, so that the model does not fit the canary
pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus and torch warn of hooks and of their generators


def loss(predictions: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(predictions, targets)


def made(
    sigma: float = 1.0, poisson: bool = True, batch: int = 4, mode: str = "hooks", seed: int = 0, watched: bool = True
) -> Any:
    """A private training of eight records with three features, and one canary."""
    torch.manual_seed(seed)
    features = torch.randn(8, 3) * torch.tensor([1.0, 1.0, 0.0])  # only the canary uses the third feature
    records = torch.utils.data.TensorDataset(features, torch.arange(8) % 2)
    canary = (torch.tensor([[0.0, 0.0, 50.0]]), torch.tensor([1]))
    model = torch.nn.Linear(3, 2)
    torch.nn.init.zeros_(model.weight)
    engine = library.PrivacyEngine()
    model, optimizer, *criterion, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
        data_loader=torch.utils.data.DataLoader(records, batch_size=batch),
        noise_multiplier=sigma,
        max_grad_norm=0.5,
        poisson_sampling=poisson,
        grad_sample_mode=mode,
        criterion=torch.nn.CrossEntropyLoss(),
    )
    scores = opacus.Scores(model, optimizer, loss, canary) if watched else None

    def update(inputs: Any, targets: Any) -> None:
        optimizer.zero_grad()
        (criterion[0] if criterion else loss)(model(inputs), targets).backward()
        optimizer.step()

    return SimpleNamespace(
        engine=engine, model=model, optimizer=optimizer, loader=loader, scores=scores, canary=canary, update=update
    )


def trained(script: Any, epochs: int = 3) -> Any:
    for _ in range(epochs):
        for inputs, targets in script.loader:
            script.update(inputs, targets)
    return script


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_watching_changes_nothing(mode: str) -> None:
    """The weights and the history of the accountant are those of a training without the adapter."""
    watched, alone = trained(made(mode=mode)), trained(made(mode=mode, watched=False))
    assert torch.equal(watched.model._module.weight, alone.model._module.weight)
    assert watched.engine.accountant.history == alone.engine.accountant.history == [(1.0, 0.5, 6)]
    assert watched.scores.steps == 6


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_score_is_the_noisy_gradient_along_the_canary(mode: str) -> None:
    script = made(mode=mode)
    layer, total = script.model._module, 0.0
    for inputs, targets in script.loader:
        before = torch.cat([layer.weight.detach().clone(), layer.bias.detach().clone()[:, None]], dim=1)
        features = torch.cat([script.canary[0], torch.ones(1, 1)], dim=1)
        wrong = torch.softmax(before @ features[0], dim=0) - torch.tensor([0.0, 1.0])
        gradient = wrong[:, None] * features
        script.update(inputs, targets)
        after = torch.cat([layer.weight.detach(), layer.bias.detach()[:, None]], dim=1)
        moved = (before - after) / RATE * 4  # Opacus divides by the expected batch size
        expected = float((moved * gradient).sum() / gradient.norm()) if float(gradient.norm()) > 0 else 0.0
        assert script.scores.latest[0] == pytest.approx(expected, abs=4e-3)
        total += script.scores.latest[0]
    assert script.scores.total[0] == pytest.approx(total)


def test_scores_do_not_depend_on_the_number_of_records() -> None:
    """Opacus divides a full batch of n records by n, so that a record more would move the mean of the others."""
    means = []
    for included in ([], [0]):
        torch.manual_seed(0)
        records = torch.utils.data.TensorDataset(torch.ones(9, 1), torch.full((9, 1), -100.0))
        silent, canary = (torch.zeros(1, 1), torch.zeros(1, 1)), (torch.ones(1, 1), torch.full((1, 1), 100.0))
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        model, optimizer, loader = library.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
            data_loader=torch.utils.data.DataLoader(opacus.joined(records, silent, included), batch_size=20),
            noise_multiplier=1e-6,
            max_grad_norm=1.0,
        )
        squared = torch.nn.functional.mse_loss
        scores = opacus.Scores(model, optimizer, squared, canary)
        for inputs, targets in loader:
            optimizer.zero_grad()
            squared(model(inputs), targets).backward()
            optimizer.step()
        assert optimizer.expected_batch_size == 9 + len(included)
        means.append(scores.total[0])
    assert means == pytest.approx([-9.0, -9.0], abs=1e-3)  # each record has a clipped gradient of norm 1


def test_noise_that_falls_during_an_audit_ends_it() -> None:
    script = made(sigma=2.0)
    step = opacus.StepByStep(script.scores, script.loader, script.update)
    script.optimizer.noise_multiplier = 4.0
    assert step.claim == training.claim(noise_multiplier=2.0, steps=1, sampling="full")
    step(0)
    script.optimizer.noise_multiplier = 1.0
    assert step.claim == training.claim(noise_multiplier=1.0, steps=1, sampling="full")
    with pytest.raises(RuntimeError, match="the noise multiplier fell from 2 to 1 during the audit"):
        step(1)


def test_canaries_join_the_records() -> None:
    records = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    canaries = torch.eye(2), torch.arange(2)
    assert len(opacus.joined(records, canaries, [])) == 3
    assert [int(target) for _, target in opacus.joined(records, canaries, [1])] == [0, 0, 0, 1]
    assert [int(target) for _, target in opacus.joined(records, canaries, np.array([False, True]))] == [0, 0, 0, 1]


def test_the_claim_is_that_of_the_history() -> None:
    script = made()
    with pytest.raises(ValueError, match="the accountant has counted no step"):
        opacus.claim(script.engine, script.loader)
    trained(script)
    same = training.claim(noise_multiplier=1.0, sampling_rate=0.5, steps=6)
    assert opacus.claim(script.engine, script.loader) == same
    script.optimizer.noise_multiplier = 2.0
    trained(script, 1)
    two = opacus.claim(script.engine, script.loader)
    assert float(two.epsilon(1e-5)) > float(same.epsilon(1e-5))
    full = trained(made(poisson=False, batch=8))
    assert opacus.claim(full.engine, full.loader) == training.claim(noise_multiplier=1.0, steps=3, sampling="full")


def test_a_loader_that_shuffles_has_no_claim_unless_it_is_audited() -> None:
    script = trained(made(poisson=False))
    with pytest.raises(ValueError, match="the claim of Poisson sampling is false"):
        opacus.claim(script.engine, script.loader)
    audited = opacus.claim(script.engine, script.loader, claimed_as="poisson")
    assert audited == training.claim(noise_multiplier=1.0, sampling_rate=0.5, steps=6)


def test_bad_input_is_named() -> None:
    script = made()
    with pytest.raises(TypeError, match="optimizer must be the optimizer that make_private returned, got a SGD"):
        opacus.Scores(script.model, script.optimizer.original_optimizer, loss, script.canary)
    with pytest.raises(TypeError, match="model must be the model that make_private returned, got a Linear"):
        opacus.Scores(script.model._module, script.optimizer, loss, script.canary)
    with pytest.raises(ValueError, match="canaries must be n inputs and n targets, got 1 and 0"):
        opacus.Scores(script.model, script.optimizer, loss, (script.canary[0], script.canary[1][:0]))
    step = opacus.StepByStep(script.scores, script.loader, lambda inputs, targets: None)
    with pytest.raises(RuntimeError, match="update must make one step of the optimizer, but made 0"):
        step(0)
    two = tuple(torch.cat([part, part]) for part in script.canary)
    with pytest.raises(ValueError, match="the scores must be of one canary, got 2"):
        opacus.StepByStep(opacus.Scores(script.model, script.optimizer, loss, two), script.loader, script.update)


def test_a_canary_without_gradient_is_named() -> None:
    script = made()
    silent = opacus.Scores(script.model, script.optimizer, lambda logits, targets: 0.0 * logits.sum(), script.canary)
    (warning,) = opacus.StepByStep(silent, script.loader, script.update).doubts()
    assert warning.startswith("the norm of the canary's gradient was 0 times the clipping norm")
    assert opacus.StepByStep(script.scores, script.loader, script.update).doubts() == ()


def weak(**given: Any) -> Any:
    return torch.normal(0.0, given["std"] / 4, given["reference"].shape)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_quarter_of_the_noise_is_refuted_step_by_step(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right noise is refuted by chance < 1 in 10**6; the generator of torch is seeded."""
    found = {}
    for name in ("right", "weak"):
        if name == "weak":
            for module in ("optimizer", "optimizer_fast_gradient_clipping"):
                monkeypatch.setattr(f"opacus.optimizers.{module}._generate_noise", weak)
        script = made(mode=mode)
        step = opacus.StepByStep(script.scores, script.loader, script.update)
        found[name] = training.step_by_step(step, step.claim, steps=300, confidence=1 - 1e-6, seed=1)
    assert not found["right"].violated
    assert found["weak"].violated, found


@pytest.mark.slow
def test_the_example_of_the_digits() -> None:
    """Each of the three true claims is refuted with probability at most 5 %, but the seeds are fixed."""
    spec = importlib.util.spec_from_file_location("opacus_digits", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(example)
        results = example.main()
    assert set(results) == {"one run", "many runs", "step by step"}
    for result in results.values():
        assert not result.violated
        assert 0 < float(result.epsilon_lower(1e-5, assuming="gaussian")) < math.inf
