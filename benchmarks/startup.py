"""How long a user waits before anything happens: `ssge --help` and `import ssge`, best of several starts."""

from __future__ import annotations

import subprocess
import sys
import time

COMMANDS = {
    "ssge --help": [sys.executable, "-m", "ssge", "--help"],
    "import ssge": [sys.executable, "-c", "import ssge"],
    "python itself": [sys.executable, "-c", "pass"],
}


def seconds(command: list[str], starts: int = 7) -> float:
    best = float("inf")
    for _ in range(starts):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    for name, command in COMMANDS.items():
        print(f"{name:14s} {seconds(command):.2f} s")
