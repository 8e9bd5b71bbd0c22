"""Forward pass of DigitCNN against PyTorch's, as a ratio: below 2 is the promise.

PyTorch runs twice, with its default memory layout and with channels last, and the faster one counts. Both sides get the
same images in float32 and the same number of threads; the best of several runs counts, taken in turns.

    python benchmarks/cnn_forward.py [--images 4000] [--repeats 7]
"""

import argparse
import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from polytrain_paper.features import DigitCNN
from polytrain_paper.features.cnn import WEIGHTS, read_weights


def torch_net(n_features):
    tensors, _ = read_weights(WEIGHTS / f"digit_cnn_d{n_features}.safetensors")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 20, 5),
        torch.nn.MaxPool2d(2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(20, 100, 5),
        torch.nn.MaxPool2d(2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(100, n_features, 4),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
    )
    for index, name in ((0, "conv1"), (3, "conv2"), (6, "conv3")):
        net[index].weight.data = torch.from_numpy(tensors[f"{name}.weight"].copy())
        net[index].bias.data = torch.from_numpy(tensors[f"{name}.bias"].copy())
    return net.eval()


def run_torch(net, images, layout):
    net.to(memory_format=layout)
    with torch.inference_mode():
        parts = [net(part[:, None].contiguous(memory_format=layout)) for part in torch.from_numpy(images).split(500)]
    return torch.cat(parts).numpy()


def seconds(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()

    images = np.random.default_rng(0).random((arguments.images, 28, 28)).astype(np.float32)
    cnn, net = DigitCNN(arguments.features).fit(images), torch_net(arguments.features)
    runs = {
        "polytrain": lambda: cnn.transform(images),
        "torch": lambda: run_torch(net, images, torch.contiguous_format),
        "torch, channels last": lambda: run_torch(net, images, torch.channels_last),
    }
    difference = np.abs(runs["polytrain"]() - runs["torch"]()).max()
    print(f"{arguments.images} images, d={arguments.features}, largest difference {difference:.1e}")
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(arguments.repeats)]
        best = {name: min(one[name] for one in rounds) for name in runs}
        ratio = best["polytrain"] / min(best["torch"], best["torch, channels last"])
        listed = ", ".join(f"{name} {1e6 * value / arguments.images:.0f}" for name, value in best.items())
        print(f"threads {threads}: microseconds per image: {listed}; ratio to the faster torch {ratio:.2f}")


if __name__ == "__main__":
    main()
