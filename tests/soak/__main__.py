"""Fit, save, load, predict, interrupt and kill at random for a while, then look at what is left.

``python tests/soak --seconds 1800`` runs processes with several threads each, which do what ``worker.py`` describes. It
interrupts them (Ctrl-C), kills them, and kills their helpers. At the end no process, no shared memory and no temporary
file may be left, every fit must have had the cores that it always has, and the one process that was never killed must
not have grown.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
TOKEN = f"POLYTRAIN_SOAK_{os.getpid()}"
# A process of the size of these fits may grow by so much after its first quarter: caches, fragments.
GROWTH, GROWTH_BYTES = 0.15, 60 << 20


class Worker:
    """One process, from its start to its end, and the last that it said."""

    def __init__(self, folder, n_threads, seed, is_steady=False):
        self.is_steady, self.said, self.sizes = is_steady, {}, []
        self.errors = tempfile.TemporaryFile("w+", dir=folder)  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder / "files"), str(n_threads), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env={**os.environ, "TMPDIR": str(folder / "tmp"), TOKEN: "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            try:
                self.said = json.loads(line)
            except json.JSONDecodeError:  # killed while it spoke
                return
            self.sizes.append(self.said["bytes"])

    def is_busy(self):
        return self.process.poll() is None

    def helpers(self):
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]

    def stop(self, seconds):
        """Ask it to end; return whether it did, in order and in time."""
        self.process.stdin.close()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGUSR1)  # it shows where its threads are
            time.sleep(1)
            code = None
            self.process.kill()
        return self.end(code == 0)

    def kill(self, number):
        self.process.send_signal(number)
        self.process.wait()
        return self.end(True)

    def end(self, is_fine):
        self.process.stdin.close()
        self._reader.join(10)
        self.process.stdout.close()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        if not is_fine:
            print(f"a worker failed or hung:\n{text}", file=sys.stderr)
        return is_fine


def marked_processes():
    """Processes, other than this one, that descend from the workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"{TOKEN}=1".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def grew(worker):
    """How much the steady process grew after its first quarter, and whether that is too much."""
    sizes = worker.sizes
    if len(sizes) < 8:
        return 0, False
    early, late = max(sizes[len(sizes) // 4 : len(sizes) // 2]), min(sizes[-max(1, len(sizes) // 8) :])
    return late - early, late > early * (1 + GROWTH) + GROWTH_BYTES


def soak(folder, seconds, rng):
    """Run for that long; return counts and what went wrong."""
    counts, faults = Counter(), []
    (folder / "files").mkdir()
    (folder / "tmp").mkdir()

    def write_expected(digests):
        (folder / "expected").write_text(json.dumps(digests))
        os.replace(folder / "expected", folder / "files" / "expected.json")

    write_expected({})
    steady = Worker(folder, 2, rng.randrange(1 << 30), is_steady=True)
    others, deadline = [], time.monotonic() + seconds
    helpers_killed = 0

    def retire(worker):
        others.remove(worker)
        counts.update(worker.said.get("counts", {}))

    while time.monotonic() < deadline:
        if steady.said.get("expected"):
            write_expected(steady.said["expected"])
        while len(others) < 2:
            others.append(Worker(folder, rng.choice((1, 3)), rng.randrange(1 << 30)))
            counts["processes"] += 1
        time.sleep(rng.uniform(0.2, 3.0))
        worker, what = rng.choice(others), rng.random()
        if not steady.is_busy():
            break
        if not worker.is_busy():
            worker.end(False)
            faults.append("a worker ended by itself")
            retire(worker)
        elif what < 0.35:
            chosen = rng.choice((worker, steady))
            if chosen.said:  # before, it would end while it imports
                os.kill(chosen.process.pid, signal.SIGINT)
        elif what < 0.6:
            helpers = worker.helpers()
            if helpers:
                os.kill(rng.choice(helpers), signal.SIGKILL)
                helpers_killed += 1
        elif what < 0.8:
            worker.kill(rng.choice((signal.SIGKILL, signal.SIGTERM)))
            retire(worker)
            counts["processes killed"] += 1
        elif what < 0.9:
            if not worker.stop(120):
                faults.append("a worker did not end in order")
            retire(worker)
    for worker in [*others, steady]:
        if not worker.stop(180):
            faults.append("a worker did not end in order")
        counts.update(worker.said.get("counts", {}))
    counts["helpers killed"] = helpers_killed
    growth, is_much = grew(steady)
    counts["bytes that the steady process grew"] = growth
    if is_much:
        faults.append(f"the steady process grew by {growth} bytes: {steady.sizes[:: max(1, len(steady.sizes) // 12)]}")
    return counts, faults


def leftovers(folder):
    """What should not be there any more."""
    deadline = time.monotonic() + 2.0  # helpers have that long to notice
    while marked_processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    found = [f"process {pid}" for pid in marked_processes()]
    found += [f"temporary file {path}" for path in (folder / "tmp").rglob("*")]
    memory = Path("/dev/shm")
    found += [f"shared memory {path}" for path in (memory.glob("polytrain-*") if memory.is_dir() else ())]
    known = ("expected.json", ".polytrain", ".safetensors")
    found += [
        f"half-written file {path}"
        for path in (folder / "files").rglob("*")
        if path.is_file() and (path.name.startswith(".") or not path.name.endswith(known))
    ]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of what happens when; the system still has its say")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"soak for {arguments.seconds:g} s with seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        counts, faults = soak(folder, arguments.seconds, random.Random(seed))
        faults += [f"left behind: {what}" for what in leftovers(folder)]
    finally:
        for pid in marked_processes():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
    for what, count in sorted(counts.items()):
        print(f"{count:>12,}  {what}")
    for fault in faults:
        print(f"FAULT: {fault}")
    print(f"{sum(counts[what] for what in ('fits', 'saves', 'loads', 'predictions'))} operations, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
