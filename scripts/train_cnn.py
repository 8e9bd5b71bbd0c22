"""Train the digit nets that ``polytrain_paper.features.DigitCNN`` ships.

The net is 1-20-P-100-P-d-10: 28x28 input, 5x5 convolution with 20 maps, 2x2 max-pooling, 5x5 convolution with 100 maps,
2x2 max-pooling, 4x4 convolution with d maps (the features), linear output. The nets for all d are trained together:
they share the two lower convolutions, which take nearly all the time, and the loss is the mean of theirs. Each is saved
as a whole net of its own.

They are trained on the deskewed MNIST training set. Some rows of a seeded permutation of it are held out, and only they
judge a net; the MNIST test set is never looked at.

    python scripts/train_cnn.py --features 20 25 30 35 40

needs the extra ``cnn`` of polytrain-paper.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional

from polytrain_paper.datasets import load_mnist
from polytrain_paper.features import Deskew

WEIGHTS = Path(__file__).parents[1] / "paper" / "src" / "polytrain_paper" / "features" / "weights"
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a net becomes, apart from d."""

    seed: int = 20
    epochs: int = 45
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-2
    label_smoothing: float = 0.02
    activation: str = "tanh"
    dropout: float = 0.0  # of the maps below the features
    # Weight of the mean square of the features before their activation; it keeps tanh from saturating.
    activity: float = 0.0
    validation: int = 5000
    # Standard deviations of the random distortions of a training digit.
    rotation: float = 0.10  # radians
    scale: float = 0.08
    shear: float = 0.08
    shift: float = 0.8  # pixels
    elastic: float = 0.7  # pixels, on a coarse grid of displacements
    # Shares of the training digits that are made thicker or thinner, blurred, and changed in contrast.
    thickness: float = 0.25
    blur: float = 0.2
    contrast: float = 0.25


class Net(nn.Module):
    """The upper part of one net: the features and the output."""

    def __init__(self, n_features: int, settings: Settings) -> None:
        super().__init__()
        self.dropout = nn.Dropout(settings.dropout)
        self.features = nn.Conv2d(100, n_features, 4)
        self.activation = ACTIVATIONS[settings.activation]()
        self.output = nn.Linear(n_features, 10)

    def forward(self, maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores, and features before their activation. Shapes: (N, 100, 4, 4) -> (N, 10), (N, d)."""
        features = self.features(self.dropout(maps)).flatten(1)
        return self.output(self.activation(features)), features


class Nets(nn.Module):
    """The nets for several d on common lower layers; pooling comes before ReLU, which is the same and cheaper."""

    def __init__(self, all_n_features: list[int], settings: Settings) -> None:
        super().__init__()
        self.lower = nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(20, 100, 5), nn.MaxPool2d(2), nn.ReLU()
        )
        self.upper = nn.ModuleDict({str(n_features): Net(n_features, settings) for n_features in all_n_features})

    def forward(self, images: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Scores and features of every net. Shapes: (N, 1, 28, 28) -> (N, 10), (N, d) each."""
        maps = self.lower(images)
        return {n_features: upper(maps) for n_features, upper in self.upper.items()}

    def layers(self, n_features: str) -> list[nn.Module]:
        """The four layers with weights of one net, from the bottom."""
        upper = self.upper[n_features]
        return [self.lower[0], self.lower[3], upper.features, upper.output]


def distort(images: torch.Tensor, settings: Settings, generator: torch.Generator) -> torch.Tensor:
    """Random affine and elastic distortion, thickness, blur and contrast. Shapes: (N, 1, 28, 28) -> the same."""
    n_images = len(images)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    def chosen(share: float) -> torch.Tensor:
        return torch.rand(n_images, generator=generator) < share

    angle = settings.rotation * normal(n_images)
    scale_x, scale_y = torch.exp(settings.scale * normal(2, n_images))
    shear = settings.shear * normal(n_images)
    shift = settings.shift / 14 * normal(n_images, 2)
    cos, sin = torch.cos(angle), torch.sin(angle)
    matrix = torch.stack(
        [
            torch.stack([cos * scale_x, (cos * shear - sin) * scale_y, shift[:, 0]], dim=1),
            torch.stack([sin * scale_x, (sin * shear + cos) * scale_y, shift[:, 1]], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    coarse = settings.elastic / 14 * normal(n_images, 2, 5, 5)
    bend = functional.interpolate(coarse, size=28, mode="bicubic", align_corners=False)
    images = functional.grid_sample(images, grid + bend.permute(0, 2, 3, 1), align_corners=False)

    rows = chosen(settings.thickness)
    ink = images[rows]
    thick = functional.max_pool2d(ink, 3, stride=1, padding=1)
    thin = -functional.max_pool2d(-ink, 3, stride=1, padding=1)
    amount = 1.2 * torch.rand(len(ink), 1, 1, 1, generator=generator) - 0.6
    images[rows] = torch.where(amount > 0, ink + amount * (thick - ink), ink - amount * (thin - ink))

    rows = chosen(settings.blur)
    side = int(torch.randint(18, 25, (1,), generator=generator))
    coarse = functional.interpolate(images[rows], size=side, mode="bilinear", antialias=True, align_corners=False)
    images[rows] = functional.interpolate(coarse, size=28, mode="bilinear", align_corners=False)

    rows = chosen(settings.contrast)
    gain = 0.7 + 0.6 * torch.rand(int(rows.sum()), 1, 1, 1, generator=generator)
    images[rows] = (gain * images[rows]).clamp(0, 1)
    return images


def one_cycle(progress: float) -> float:
    """Share of the top learning rate: a linear warm-up over the first fifth, then half a cosine down to 0."""
    if progress < 0.2:
        return 0.05 + 0.95 * progress / 0.2
    return 0.5 * (1 + math.cos(math.pi * (progress - 0.2) / 0.8))


def train(images: NDArray, labels: NDArray, all_n_features: list[int], settings: Settings) -> tuple[Nets, dict]:
    """Train the nets; return them with what was measured on the held-out rows, for every d."""
    torch.manual_seed(settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    order = np.random.default_rng(settings.seed).permutation(len(images))
    held_out, kept = order[: settings.validation], order[settings.validation :]
    X = torch.from_numpy(images[kept]).reshape(-1, 1, 28, 28)
    y = torch.from_numpy(labels[kept].astype(np.int64))

    nets = Nets(all_n_features, settings).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(nets.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    n_batches = len(X) // settings.batch_size
    started = time.perf_counter()
    for epoch in range(settings.epochs):
        nets.train()
        shuffled = torch.randperm(len(X), generator=generator)
        total = 0.0
        for batch in range(n_batches):
            rate = settings.learning_rate * one_cycle((epoch + batch / n_batches) / settings.epochs)
            optimizer.param_groups[0]["lr"] = rate
            rows = shuffled[batch * settings.batch_size : (batch + 1) * settings.batch_size]
            answers = nets(distort(X[rows], settings, generator).contiguous(memory_format=torch.channels_last))
            losses = [
                functional.cross_entropy(scores, y[rows], label_smoothing=settings.label_smoothing)
                + settings.activity * features.square().mean()
                for scores, features in answers.values()
            ]
            loss = torch.stack(losses).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        errors = error_rates(nets, images[held_out], labels[held_out])
        listed = ", ".join(f"d={n_features} {error:.2%}" for n_features, error in errors.items())
        print(
            f"epoch {epoch + 1}/{settings.epochs}: loss {total / n_batches:.4f}, validation error {listed}, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )
    train_errors = error_rates(nets, images[kept], labels[kept])
    reports = {
        n_features: {"validation_error": errors[n_features], "train_error": train_errors[n_features]}
        for n_features in errors
    }
    return nets, reports


def error_rates(nets: Nets, images: NDArray, labels: NDArray) -> dict[str, float]:
    """Share of wrong answers of each net's own output layer."""
    nets.eval()
    wrong = dict.fromkeys(nets.upper, 0)
    truth = torch.from_numpy(labels.astype(np.int64))
    with torch.inference_mode():
        for part, digits in zip(torch.from_numpy(images).split(500), truth.split(500), strict=True):
            answers = nets(part.reshape(-1, 1, 28, 28).contiguous(memory_format=torch.channels_last))
            for n_features, (scores, _) in answers.items():
                wrong[n_features] += int((scores.argmax(dim=1) != digits).sum())
    return {n_features: count / len(images) for n_features, count in wrong.items()}


def save(layers: list[nn.Module], path: Path, settings: Settings, report: dict) -> None:
    """Write one net under the names that ``DigitCNN`` reads, C-contiguous float32."""
    tensors = {}
    for name, layer in zip(("conv1", "conv2", "conv3", "output"), layers, strict=True):
        for kind, values in layer.named_parameters():
            tensors[f"{name}.{kind}"] = np.ascontiguousarray(values.detach().contiguous().numpy(), dtype=np.float32)
    metadata = {
        "format": "1",
        "activation": settings.activation,
        "settings": json.dumps(asdict(settings)),
        "report": json.dumps(report),
    }
    save_file(tensors, path, metadata=metadata)


def main() -> None:
    """Train and save a net for each requested number of features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[20, 25, 30, 35, 40], help="numbers of features d")
    parser.add_argument("--data-home", help="folder of the MNIST files, as for polytrain_paper.datasets.load_mnist")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder for the weights")
    parser.add_argument("--threads", type=int, default=2, help="threads for PyTorch")
    group = parser.add_argument_group("settings", "what decides the result; see Settings")
    for field in fields(Settings):
        group.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    settings = Settings(**{field.name: getattr(arguments, field.name) for field in fields(Settings)})
    data = load_mnist(data_home=arguments.data_home)
    images = Deskew().fit_transform(data.train_images)
    nets, reports = train(images, data.train_labels, arguments.features, settings)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for n_features, report in reports.items():
        path = arguments.out / f"digit_cnn_d{n_features}.safetensors"
        save(nets.layers(n_features), path, settings, report)
        print(f"{path.name}: {report}")


if __name__ == "__main__":
    main()
