"""One step of private training with Opacus's PrivacyEngine; the output is the weights.

The library draws from torch's global generator, which the worker seeds.
"""

import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", module="opacus|torch")


class Training:
    """A linear model of `weights` zeros after one step of SGD with learning rate 1; the claim is the engine's.

    A dataset lists which unit vectors the records are: each has a gradient of norm 1.
    `normaliser`: what the noisy gradient is divided by; None leaves it to Opacus, which takes the expected batch size,
    int(records * sampling rate).
    """

    def __init__(self, weights, batch_size, sigma, normaliser=None, delta=1e-5):
        self._weights, self._batch_size, self._sigma, self._normaliser = weights, batch_size, sigma, normaliser
        engine, _ = self._train(list(range(2 * batch_size)))
        self.claim = f"approximate(epsilon={float(engine.get_epsilon(delta=delta))!r}, delta={delta!r})"

    def __call__(self, dataset, rng):
        return self._train(dataset)[1]

    def _train(self, dataset):
        model = torch.nn.Linear(self._weights, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        records = TensorDataset(torch.eye(self._weights)[dataset])
        engine = PrivacyEngine(accountant="prv")
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=DataLoader(records, batch_size=self._batch_size),
            noise_multiplier=self._sigma,
            max_grad_norm=1.0,
        )
        if self._normaliser is not None:
            optimizer.expected_batch_size = self._normaliser
        (batch,) = next(iter(loader))
        private(batch).sum().backward()
        optimizer.step()
        return engine, model.weight.detach().numpy().ravel()
