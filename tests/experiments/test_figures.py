from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import image

from ssge.errors import InputError
from ssge.experiments import figures
from ssge.experiments.figures import canvas, curves
from ssge.experiments.figures import map as maps
from ssge.experiments.layout import Coloring, lay_out

PACKAGES = {
    "sklearn": "cluster linear_model svm tree ensemble metrics preprocessing decomposition manifold io",
    "scipy": "stats sparse linalg optimize signal spatial special integrate interpolate ndimage io fft",
    "numpy": "linalg random ma polynomial fft lib core",
    "matplotlib": "axes backends pyplot tri transforms colors",
}
MODULES = [f"{package}.{module}" for package, modules in PACKAGES.items() for module in modules.split()]
HISTORY = [
    {
        "epoch": epoch,
        "total": 40 / epoch - 64,
        "alignment": -64 + 30 / epoch,
        "uniformity": 100 / epoch,
        "effective_rank": 60.0 - 50 / epoch,
    }
    for epoch in range(1, 41)
]


def clusters(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, classes, n)
    return 3 * rng.normal(size=(classes, d))[labels] + rng.normal(size=(n, d)), labels


def classes(labels: np.ndarray, names: list[str] | None = None) -> Coloring:
    return Coloring("", names or [f"class {c}" for c in range(labels.max() + 1)], labels)


def pixels(path: Path) -> np.ndarray:
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    return image.imread(path)[..., :3]


def colors_in(path: Path) -> set[tuple[int, ...]]:
    # One integer a pixel: sorting rows of three would take seconds.
    codes = np.rint(pixels(path) * 255).astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
    found, counts = np.unique(codes, return_counts=True)
    return {(code >> 16, code >> 8 & 255, code & 255) for code in found[counts > 20].tolist()}


def rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


@pytest.fixture
def plane() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 2))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every figure that is saved, to look at what it holds."""
    kept: list[Any] = []
    save = canvas.save

    def spy(figure: Any, target: Path) -> Path:
        kept.append(figure)
        return save(figure, target)

    monkeypatch.setattr(canvas, "save", spy)
    return kept


def draw(kind: str, path: Path) -> Path:
    embedding, labels = clusters(80, 6, 4)
    match kind:
        case "embedding_map":
            return figures.embedding_map(path, embedding, classes(labels))
        case "loss_curves":
            return figures.loss_curves(path, HISTORY, "The loss falls")
        case "covariance":
            return figures.correlations(path, {"Before": embedding, "After": embedding[:, :3]})
        case _:
            return figures.spectrum(path, {"one": embedding, "two": embedding[:, :3]})


SIZES = {
    "embedding_map": (1140, 1500),
    "loss_curves": (555, 1845),
    "covariance": (757, 1590),
    "spectrum": (720, 1140),
}


@pytest.mark.parametrize("kind", SIZES)
def test_png_has_the_expected_size_and_is_not_blank(kind: str, tmp_path: Path) -> None:
    path = draw(kind, tmp_path / "new folder" / "figure.png")
    assert path == tmp_path / "new folder" / "figure.png"
    picture = pixels(path)
    assert picture.shape[:2] == SIZES[kind]
    assert picture.std() > 0.03
    assert [file.name for file in path.parent.iterdir()] == ["figure.png"]  # no temporary file is left


@pytest.mark.parametrize("suffix", canvas.FORMATS)
@pytest.mark.parametrize("kind", SIZES)
def test_same_input_gives_same_bytes_in_any_thread(kind: str, suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}{suffix}" for k in range(2)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda path: draw(kind, path).read_bytes(), paths)
    assert first == second


@pytest.mark.parametrize("kind", SIZES)
def test_svg_is_well_formed_and_every_reference_has_its_target(kind: str, tmp_path: Path) -> None:
    text = draw(kind, tmp_path / "figure.SVG").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    ids = re.findall(r'\bid="([^"]+)"', text)
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert references <= set(ids)
    assert any(name.startswith("id") for name in references)  # the random ids were found and numbered
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("name", ["figure.gif", "figure", "figure.png.txt"])
def test_unknown_suffix_is_refused_before_anything_is_written(kind: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path must end in \.png or \.svg; received"):
        draw(kind, tmp_path / "folder" / name)
    assert not (tmp_path / "folder").exists()


def test_session_style_is_neither_used_nor_changed(tmp_path: Path) -> None:
    plain = draw("spectrum", tmp_path / "plain.png")
    settings = {"axes.facecolor": "black", "figure.facecolor": "black", "axes.grid": True}
    with mpl.rc_context(settings):
        before = dict(mpl.rcParams)
        styled = draw("spectrum", tmp_path / "styled.png")
        assert dict(mpl.rcParams) == before
    assert styled.read_bytes() == plain.read_bytes()


def test_importing_the_module_is_light() -> None:
    heavy = "{'matplotlib', 'sklearn', 'torch', 'matplotlib.pyplot'}"
    code = f"import sys, ssge.experiments.figures; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_map_paints_few_classes_from_the_palette_and_names_them_beside(
    plane: np.ndarray, drawn: list[Any], tmp_path: Path
) -> None:
    labels = np.arange(300) % 3
    path = figures.embedding_map(tmp_path / "map.png", plane, classes(labels, ["ant", "bee", "cat"]))
    assert {rgb(color) for color in canvas.PALETTE[:3]} <= colors_in(path)  # opaque in the legend
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["ant", "bee", "cat"]
    assert not drawn[0].axes[0].texts


def test_map_of_two_columns_shows_them_as_they_are(plane: np.ndarray, drawn: list[Any], tmp_path: Path) -> None:
    original = plane.copy()
    figures.embedding_map(tmp_path / "map.png", plane)
    (scatter,) = drawn[0].axes[0].collections
    shown = np.asarray(scatter.get_offsets())
    np.testing.assert_array_equal(np.sort(shown, axis=0), np.sort(plane, axis=0))
    assert drawn[0].axes[0].get_xlabel() == "column 1"
    np.testing.assert_array_equal(plane, original)


def test_map_without_labels_or_with_one_class_has_one_color(
    plane: np.ndarray, drawn: list[Any], tmp_path: Path
) -> None:
    figures.embedding_map(tmp_path / "none.png", plane)
    figures.embedding_map(tmp_path / "one.png", plane, classes(np.zeros(300, dtype=int), ["only"]))
    for figure in drawn:
        assert len(np.unique(figure.axes[0].collections[0].get_facecolors(), axis=0)) == 1
    assert not drawn[0].legends
    assert drawn[1].axes[0].get_title(loc="left") == "300 nodes, 1 class"


def test_map_draws_nodes_without_class_in_gray_below_the_others(
    plane: np.ndarray, drawn: list[Any], tmp_path: Path
) -> None:
    labels = np.where(np.arange(300) < 100, -1, 0)
    figures.embedding_map(tmp_path / "map.png", plane, classes(labels, ["known"]))
    paint = drawn[0].axes[0].collections[0].get_facecolors()
    gray = np.isclose(paint[:, :3], np.array(rgb(canvas.FAINT)) / 255).all(axis=1)
    np.testing.assert_array_equal(gray, np.arange(300) < 100)
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["known", "no class"]


def test_map_draws_a_sample_and_the_seed_chooses_them(plane: np.ndarray, drawn: list[Any], tmp_path: Path) -> None:
    for seed in (0, 0, 1):
        figures.embedding_map(tmp_path / "map.png", plane, seed=seed, points=50)
    first, again, other = (np.asarray(figure.axes[0].collections[0].get_offsets()) for figure in drawn)
    assert first.shape == (50, 2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert drawn[0].axes[0].get_title(loc="left") == "50 of 300 nodes"


def test_map_keeps_separate_clusters_apart() -> None:
    embedding, labels = clusters(150, 64, 3)
    layout, axis_names = lay_out(embedding, seed=0)[:2]
    assert axis_names == ("t-SNE 1", "t-SNE 2")
    distance = np.linalg.norm(layout[:, None] - layout[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (labels[distance.argmin(axis=1)] == labels).mean() > 0.98


def test_map_does_not_depend_on_the_scale_or_place_of_the_embedding() -> None:
    embedding, _ = clusters(40, 8, 3)
    layout, _ = lay_out(embedding, seed=0)[:2]
    moved, _ = lay_out(embedding * 4.0 + 2.0, seed=0)[:2]
    distances = [np.linalg.norm(z[:, None] - z[None], axis=2).argsort(axis=1)[:, 1] for z in (layout, moved)]
    assert (distances[0] == distances[1]).mean() > 0.8


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 8), (2, 3), (4, 16), (5, 3), (6, 200), (30, 1), (1, 2)])
def test_map_of_tiny_embeddings(n: int, d: int, tmp_path: Path) -> None:
    embedding = np.random.default_rng(1).normal(size=(n, d))
    path = figures.embedding_map(tmp_path / "map.png", embedding, classes(np.arange(n) % 2))
    assert rgb(canvas.PALETTE[0]) in colors_in(path)


def test_two_components_of_few_nodes_keep_their_distances() -> None:
    embedding = np.random.default_rng(1).normal(size=(3, 9))  # three points always lie on a plane
    layout, _ = lay_out(embedding, seed=0)[:2]
    expected = np.linalg.norm(embedding[:, None] - embedding[None], axis=2)
    np.testing.assert_allclose(np.linalg.norm(layout[:, None] - layout[None], axis=2), expected, atol=1e-12)


def test_map_of_a_collapsed_embedding_is_one_point(tmp_path: Path) -> None:
    embedding = np.full((40, 16), 0.3, dtype=np.float32)
    layout, _ = lay_out(embedding, seed=0)[:2]
    np.testing.assert_allclose(layout, 0.0, atol=1e-6)
    figures.embedding_map(tmp_path / "map.png", embedding)


def test_many_dotted_classes_share_hues_and_are_named_without_overlap(drawn: list[Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(len(MODULES)), 20)
    places = rng.uniform(0, 10, size=(len(MODULES), 2))[labels] + 0.2 * rng.normal(size=(len(labels), 2))
    figures.embedding_map(tmp_path / "map.png", places, classes(labels, MODULES))
    (figure,) = drawn
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries == [
        "scipy, 12 classes",
        "sklearn, 10 classes",
        "numpy, 7 classes",
        "matplotlib, 6 classes",
    ]
    texts = figure.axes[0].texts
    named = [text.get_text() for text in texts]
    assert set(named) <= set(MODULES)
    assert len(named) == len(set(named)) > len(MODULES) // 2
    boxes = [text.get_window_extent() for text in texts]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    for text in texts:  # each stands on or next to its own class
        center = np.median(places[labels == MODULES.index(text.get_text())], axis=0)
        assert np.linalg.norm(np.asarray(text.xy) - center) < 0.5


def test_every_class_has_its_own_color() -> None:
    for names in (MODULES, [f"cs.{k}" for k in range(40)], [f"topic {k}" for k in range(49)]):
        colors, dark, families = maps.class_colors(names)
        assert len(np.unique(colors.round(3), axis=0)) == len(names)
        assert colors.min() >= 0
        assert colors.max() <= 1
        assert dark.sum(axis=1).max() < 1.5  # readable on white
        assert bool(families) == (names is MODULES)


def test_name_stands_in_the_larger_part_of_a_split_class() -> None:
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 40.0]
    (x, y), radius = maps._heart(np.concatenate(parts))
    assert np.hypot(x, y) < 2
    assert 0 < radius < 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding": np.zeros(5)}, "embedding must be a matrix n x d"),
        ({"embedding": np.zeros((0, 3))}, "embedding must be a matrix n x d"),
        ({"embedding": np.full((4, 3), np.nan)}, "embedding must be finite"),
        ({"points": 0}, "points must be 1 or more; received 0"),
    ],
)
def test_map_refuses_what_it_cannot_draw(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        figures.embedding_map(tmp_path / "map.png", **{"embedding": np.eye(4), **change})


def test_curves_hold_the_history(drawn: list[Any], tmp_path: Path) -> None:
    figures.loss_curves(tmp_path / "loss.png", HISTORY, "The loss falls")
    (figure,) = drawn
    lines = {line.get_label().split(",")[0]: line for axes in figure.axes for line in axes.lines}
    assert set(lines) == {"total", "alignment", "uniformity", "effective_rank"}
    for term, line in lines.items():
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 41))
        np.testing.assert_array_equal(line.get_ydata(), [row[term] for row in HISTORY])
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log", "linear"]
    assert all(axes.get_xlabel() == "epoch" and axes.get_ylabel() for axes in figure.axes)
    assert figure.get_suptitle() == "The loss falls"


def test_curves_of_a_history_with_gaps(drawn: list[Any], tmp_path: Path) -> None:
    history = [{"epoch": k, "total": 1.0 / k, "effective_rank": None if k % 2 else float(k)} for k in range(1, 9)]
    figures.loss_curves(tmp_path / "loss.png", history, "Rank every other epoch")
    loss, rank = drawn[0].axes
    assert loss.get_title(loc="left") == "Total loss"
    np.testing.assert_array_equal(rank.lines[0].get_xdata(), [2, 4, 6, 8])


@pytest.mark.parametrize("history", [[], [{"epoch": 1}], [{"total": 1.0}]])
def test_curves_refuse_a_history_without_epoch_and_total(history: list[dict[str, float]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="history must be dicts with epoch and total"):
        figures.loss_curves(tmp_path / "loss.png", history, "Nothing")


def test_covariance_shows_absolute_correlations_on_one_scale(drawn: list[Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    before, after = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 9)), rng.normal(size=(60, 300))
    figures.correlations(tmp_path / "covariance.png", {"Before": before, "After": after})
    left, right = (axes.images[0] for axes in drawn[0].axes[:2])
    np.testing.assert_allclose(left.get_array(), np.abs(np.corrcoef(before.T)), atol=1e-12)
    np.testing.assert_allclose(right.get_array(), np.abs(np.corrcoef(after[:, :256].T)), atol=1e-12)
    assert left.get_clim() == right.get_clim() == (0, 1)
    assert drawn[0].axes[1].get_xlabel() == "column (first 256 of 300)"
    assert len(drawn[0].axes) == 3  # one color bar


def test_covariance_masks_constant_columns_only() -> None:
    embedding = np.random.default_rng(7).normal(size=(20, 3)).astype(np.float32)
    embedding[:, 1] = 0.1
    correlation = curves.absolute_correlation(embedding, "before")
    assert np.isnan(correlation[1]).all()
    assert np.isnan(correlation[:, 1]).all()
    assert np.isfinite(correlation[np.ix_([0, 2], [0, 2])]).all()


def test_covariance_needs_two_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="after must have at least two rows"):
        figures.correlations(tmp_path / "covariance.png", {"Before": np.eye(3), "After": np.ones((1, 3))})


def test_spectrum_shows_eigenvalues_and_effective_ranks(drawn: list[Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(65, 9))
    white = np.linalg.qr(noise - noise.mean(axis=0))[0]  # columns centered and orthogonal: every eigenvalue 1
    mixed = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    figures.spectrum(tmp_path / "spectrum.png", {"white": white, "mixed": mixed})
    (axes,) = drawn[0].axes
    first, second, isotropic = axes.lines
    np.testing.assert_allclose(first.get_ydata(), np.ones(9), atol=1e-10)
    expected = np.linalg.eigvalsh(np.corrcoef(mixed.T))[::-1]
    np.testing.assert_allclose(second.get_ydata(), expected, rtol=1e-8)
    np.testing.assert_array_equal(isotropic.get_ydata(), [1, 1])
    assert first.get_label() == "white: effective rank 9 of 9"
    share = expected / expected.sum()
    assert f"effective rank {np.exp(-(share * np.log(share)).sum()):.3g} of 5" in second.get_label()
    assert axes.get_yscale() == "log"


def test_spectrum_of_a_collapsed_embedding_leaves_through_the_bottom(drawn: list[Any], tmp_path: Path) -> None:
    column = np.random.default_rng(9).normal(size=(30, 1))
    figures.spectrum(tmp_path / "spectrum.png", {"collapsed": np.tile(column, 6)})
    axes = drawn[0].axes[0]
    assert axes.get_ylim()[0] == curves.SMALLEST_EIGENVALUE > axes.lines[0].get_ydata()[-1]
    assert axes.lines[0].get_label() == "collapsed: effective rank 1 of 6"


def test_spectrum_needs_a_curve(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="curves must hold at least one"):
        figures.spectrum(tmp_path / "spectrum.png", {})
