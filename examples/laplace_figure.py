"""Figure 4.14: a skewed density and its Laplace approximation, and the negative logs of both.

p(z) = f(z)/Z with f(z) = exp(-z²/2) σ(20z + 4). The Gaussian has the mode and the curvature of f
there, and the estimate of Z that comes with it is compared with that of quadrature.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from scipy.integrate import quad
from scipy.special import log_expit

from posteriori import laplace
from posteriori.posterior.laplace import LaplaceApproximation
from posteriori.report.plots import COLOURS

PICTURE = Path("demo") / "laplace.png"
LOW, HIGH = -2.0, 4.0

console = Console(soft_wrap=True)


def main() -> None:
    q = laplace(log_density, 0.0)
    log_z = float(np.log(quad(lambda z: np.exp(log_density(z)), -10, 10, points=[-0.2])[0]))
    console.print(
        f"Mode {q.mode[0]:.6f}, precision {q.precision[0, 0]:.6f}; ln Z {q.log_normaliser:.4f} by "
        f"(4.135), {log_z:.4f} by quadrature: {PICTURE}",
        highlight=False,
    )
    draw(q, log_z)


def log_density(z: float | np.ndarray) -> np.ndarray:
    """ln f(z)."""
    return -(z**2) / 2 + log_expit(20 * z + 4)


def draw(q: LaplaceApproximation, log_z: float) -> None:
    """Densities on the left, their negative logs on the right."""
    z = np.linspace(LOW, HIGH, 601)
    exact, near = log_density(z) - log_z, q.log_density(z[:, None])
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw_pair(left, z, np.exp(exact), np.exp(near))
    draw_pair(right, z, -exact, -near)
    left.fill_between(z, np.exp(exact), color=COLOURS[1], alpha=0.25)
    left.axvline(q.mode[0], color="0.5", linestyle=":", linewidth=1)
    left.set(title="density", ylim=(0, 0.8))
    right.set(title="negative log density", ylim=(0, 40))
    left.legend(frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


def draw_pair(ax: Axes, z: np.ndarray, exact: np.ndarray, near: np.ndarray) -> None:
    ax.plot(z, exact, color=COLOURS[1], label="p(z)")
    ax.plot(z, near, color=COLOURS[5], linestyle="--", label="Laplace approximation")
    ax.set(xlabel="z", xlim=(LOW, HIGH))


if __name__ == "__main__":
    mpl.use("agg")
    main()
