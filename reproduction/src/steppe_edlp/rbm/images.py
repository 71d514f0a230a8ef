"""Images spoiled and compared: noise, occlusion, and the measures of reconstruction the paper reports."""

import numpy as np

CONDITIONS = ("clean", "noisy", "occluded")
METRICS = ("mse", "psnr", "ssim", "brightness")

NOISE = 0.1
# Sides of the black square, and of the window of SSIM, for images of 28 points; smaller images get less.
OCCLUDED_SIDES, WINDOW, FULL_SIDE = (5, 10), 7, 28
STABILISERS = (0.01**2, 0.03**2)
LEAST_ERROR = 1e-12  # a perfect image has no finite signal-to-noise ratio


def spoil(images: np.ndarray, condition: str, seed: int) -> np.ndarray:
    """Images as they are, with noise, or with a black square each.

    Parameters
    ----------
    images
        Rows of grey levels in [0, 1].
    condition
        One of `CONDITIONS`.
    seed
        Of the noise or the squares; the same for all samplers.
    """
    rng = np.random.default_rng(seed)
    if condition == "clean":
        return images
    if condition == "noisy":
        return np.clip(images + NOISE * rng.standard_normal(images.shape), 0, 1).astype(np.float32)
    side = round(images.shape[1] ** 0.5)
    minimum, maximum = (max(1, round(length * side / FULL_SIDE)) for length in OCCLUDED_SIDES)
    lengths = rng.integers(minimum, maximum + 1, len(images))
    corners = [rng.integers(0, side - lengths + 1) for _ in range(2)]
    places = np.arange(side)
    inside = [(places >= corner[:, None]) & (places < (corner + lengths)[:, None]) for corner in corners]
    black = (inside[0][:, :, None] & inside[1][:, None, :]).reshape(len(images), -1)
    return np.where(black, 0, images).astype(np.float32)


def pass_through_pictures(images: np.ndarray) -> np.ndarray:
    """Images as the authors' programs hand them on: written at three quarters of their side, and read back.

    Parameters
    ----------
    images
        Rows of bits. The nearest point is written; reading interpolates between the four nearest.
    """
    side = round(images.shape[1] ** 0.5)
    small = 3 * side // 4
    nearest = ((np.arange(small) + 0.5) * side / small).astype(int)
    written = images.reshape(-1, side, side)[:, nearest][:, :, nearest]
    places = np.clip((np.arange(side) + 0.5) * small / side - 0.5, 0, small - 1)
    weights = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(small)))
    read = np.einsum("ip,npq,jq->nij", weights, written, weights)
    return read.reshape(len(images), -1).astype(np.float32)


def compare(outputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Mean over images of every measure of `METRICS`.

    `brightness` is `−mean(output − wanted)`, what the paper calls a log-likelihood: it says how much too dark
    the reconstructions are on average, and nothing about probabilities.

    Parameters
    ----------
    outputs
        Reconstructions, rows of pixels.
    wanted
        What they should be.
    """
    errors = np.mean((outputs - wanted) ** 2, axis=1, dtype=float)
    ratio = -10 * np.log10(np.maximum(errors, LEAST_ERROR))
    brightness = -np.mean(outputs - wanted, axis=1, dtype=float)
    return np.asarray(
        [errors.mean(), ratio.mean(), find_similarity(outputs, wanted).mean(), brightness.mean()]
    )


def find_similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Structural similarity (SSIM) of every pair of images: uniform windows, reflected borders."""
    from scipy.ndimage import uniform_filter

    side = round(first.shape[1] ** 0.5)
    width = max(3, WINDOW * side // FULL_SIDE)
    x, y = (np.asarray(part, np.float64).reshape(-1, side, side) for part in (first, second))

    def mean(values: np.ndarray) -> np.ndarray:
        return uniform_filter(values, width, mode="reflect", axes=(1, 2))

    mean_x, mean_y = mean(x), mean(y)
    variances = mean(x * x) - mean_x**2 + mean(y * y) - mean_y**2
    covariance = mean(x * y) - mean_x * mean_y
    level, contrast = STABILISERS
    top = (2 * mean_x * mean_y + level) * (2 * covariance + contrast)
    return (top / ((mean_x**2 + mean_y**2 + level) * (variances + contrast))).mean(axis=(1, 2))


def find_log_discrepancy(first: np.ndarray, second: np.ndarray) -> float:
    """Log of the squared maximum mean discrepancy (V-statistic) under `exp(−fraction of differing pixels)`.

    Parameters
    ----------
    first, second
        Rows of bits.
    """
    own, other, between = find_kernel_means(first, second)
    return float(np.log(max(own + other - 2 * between, LEAST_ERROR)))


def find_kernel_means(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Means of that kernel within the first set, within the second, and between them."""
    return _average_kernel(first, first), _average_kernel(second, second), _average_kernel(first, second)


def _average_kernel(first: np.ndarray, second: np.ndarray) -> float:
    a, b = np.asarray(first, np.float32), np.asarray(second, np.float32)
    differing = a.sum(1)[:, None] + b.sum(1) - 2 * a @ b.T
    return float(np.exp(-differing.astype(float) / a.shape[1]).mean())
