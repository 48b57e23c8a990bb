"""The one table of facts about every dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ssge.registry import Registry


@dataclass(frozen=True)
class File:
    """One raw file of a dataset.

    Parameters
    ----------
    path
        Where it stands below the data folder.
    urls
        Addresses to fetch it from, tried in order.
    sha256
        Its checksum, or None where none is on record; the note of the dataset then says why.
    member
        Its path inside the zip archive that ``urls`` lead to, or None if they lead to the file itself.
    """

    path: str
    urls: tuple[str, ...]
    sha256: str | None = None
    member: str | None = None

    @property
    def name(self) -> str:
        """The last part of the path; no two files of a dataset share it."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Facts:
    """What is known of a dataset before it is read.

    Sizes are what the loader gives: edges are directed, after symmetrizing, without self-loops. They are None
    where they depend on options or on installed versions. ``split`` says what the dataset is evaluated on:
    its ``public`` split, the 20 splits of WikiCS, the split by year of OGB, or ``random`` ones, which
    `random_splits` makes. ``probe_weight_decay`` and ``public_in_released_code`` say what the released code of SSGE
    does on the dataset: the weight decay of its probe, and whether it takes the public split.
    """

    name: str
    title: str
    description: str
    source: str
    reference: str
    license: str
    format: Literal["planetoid", "npz", "wikics", "ogb", "imports", "digits", "karate", "sbm"]
    num_nodes: int | None = None
    num_edges: int | None = None
    num_features: int | None = None
    num_classes: int | None = None
    split: Literal["public", "random", "wikics20", "ogb"] = "random"
    normalization: Literal["row", "none"] = "none"
    class_names: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    note: str = ""
    probe_weight_decay: float = 1e-4
    public_in_released_code: bool = False


DATASETS: Registry[Facts] = Registry("dataset")


def _planetoid(folder: str, name: str, **checksums: str) -> tuple[File, ...]:
    """List the eight files; a dot in a file's suffix is an underscore in the keyword."""
    files = ((f"ind.{name}.{suffix.replace('_', '.')}", sha256) for suffix, sha256 in checksums.items())
    return tuple(
        File(
            f"{folder}/raw/{file}",
            (f"https://github.com/kimiyoung/planetoid/raw/master/data/{file}",),
            sha256,
        )
        for file, sha256 in files
    )


def _npz(folder: str, name: str, sha256: str) -> tuple[File, ...]:
    url = f"https://github.com/shchur/gnn-benchmark/raw/master/data/npz/{name}"
    return (File(f"{folder}/raw/{name}", (url,), sha256),)


def _arxiv(path: str, sha256: str | None) -> File:
    host = "snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
    return File(f"ogbn_arxiv/{path}", (f"https://{host}", f"http://{host}"), sha256, f"arxiv/{path}")


_PLANETOID = "https://github.com/kimiyoung/planetoid"
_YANG = "Yang, Cohen, Salakhutdinov: Revisiting Semi-Supervised Learning with Graph Embeddings, ICML 2016"
_SHCHUR = "Shchur, Mumme, Bojchevski, Günnemann: Pitfalls of Graph Neural Network Evaluation, 2018"
_ARXIV_AREAS = (
    "na mm lo cy cr dc hc ce ni cc ai ma gl ne sc ar cv gr et sy "
    "cg oh pl se lg sd si ro it pf cl ir ms fl ds os gt db dl dm"
)
_NO_LICENSE = "not stated by the source"

_TABLE = (
    Facts(
        name="cora",
        title="Cora",
        description="Machine-learning papers joined by citations; words of the abstract as 0/1 features.",
        source=_PLANETOID,
        reference=_YANG,
        license=_NO_LICENSE,
        format="planetoid",
        num_nodes=2_708,
        num_edges=10_556,
        num_features=1_433,
        num_classes=7,
        split="public",
        normalization="row",
        class_names=(
            "Theory",
            "Reinforcement learning",
            "Genetic algorithms",
            "Neural networks",
            "Probabilistic methods",
            "Case based",
            "Rule learning",
        ),
        files=_planetoid(
            "Cora",
            "cora",
            x="23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
            tx="b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
            allx="9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
            y="94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
            ty="41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
            ally="2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
            graph="58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
            test_index="297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        ),
        public_in_released_code=True,
    ),
    Facts(
        name="citeseer",
        title="CiteSeer",
        description="Computer-science papers joined by citations; words of the paper as 0/1 features.",
        source=_PLANETOID,
        reference=_YANG,
        license=_NO_LICENSE,
        format="planetoid",
        num_nodes=3_327,
        num_edges=9_104,
        num_features=3_703,
        num_classes=6,
        split="public",
        normalization="row",
        class_names=(
            "Artificial intelligence",
            "Machine learning",
            "Information retrieval",
            "Databases",
            "Agents",
            "Human-computer interaction",
        ),
        files=_planetoid(
            "CiteSeer",
            "citeseer",
            x="d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
            tx="539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
            allx="2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
            y="8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
            ty="55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
            ally="f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
            graph="d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
            test_index="2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        ),
        note="15 nodes have neither features nor label in the source; as everywhere, they get zeros and "
        "class 0, and are in no split.",
        probe_weight_decay=1e-2,
    ),
    Facts(
        name="pubmed",
        title="PubMed",
        description="Papers on diabetes joined by citations; tf-idf of the words of the abstract.",
        source=_PLANETOID,
        reference=_YANG,
        license=_NO_LICENSE,
        format="planetoid",
        num_nodes=19_717,
        num_edges=88_648,
        num_features=500,
        num_classes=3,
        split="public",
        normalization="row",
        class_names=("Experimental diabetes", "Type 1 diabetes", "Type 2 diabetes"),
        files=_planetoid(
            "PubMed",
            "pubmed",
            x="fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            tx="4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            allx="508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            y="e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            ty="ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            ally="0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            graph="5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            test_index="b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        ),
        probe_weight_decay=0.0,
    ),
    Facts(
        name="computer",
        title="Computer",
        description="Computer goods joined when bought together; words of the reviews as 0/1 features.",
        source="https://github.com/shchur/gnn-benchmark",
        reference=_SHCHUR,
        license="MIT",
        format="npz",
        num_nodes=13_752,
        num_edges=491_722,
        num_features=767,
        num_classes=10,
        class_names=(
            "Desktops",
            "Data storage",
            "Laptops",
            "Monitors",
            "Computer components",
            "Video projectors",
            "Routers",
            "Tablets",
            "Networking products",
            "Webcams",
        ),
        files=_npz(
            "Computers",
            "amazon_electronics_computers.npz",
            "be58a1ec75405bfb2f9917b85cc34eb29c606df5a988da355468dda97d19b753",
        ),
    ),
    Facts(
        name="coauthor_cs",
        title="CoauthorCS",
        description="Authors in computer science joined by common papers; counts of keywords as features.",
        source="https://github.com/shchur/gnn-benchmark",
        reference=_SHCHUR,
        license="MIT",
        format="npz",
        num_nodes=18_333,
        num_edges=163_788,
        num_features=6_805,
        num_classes=15,
        files=_npz(
            "CS",
            "ms_academic_cs.npz",
            "7bbda0ec297bb44efc712cc59f9e9a6c9ac959e5c4848e311bc7e011b0be5753",
        ),
        note="Features are counts, as DGL keeps them; PyTorch Geometric makes them 0/1.",
    ),
    Facts(
        name="wikics",
        title="WikiCS",
        description="Wikipedia articles on computer science joined by links; mean word vectors as features.",
        source="https://github.com/pmernyei/wiki-cs-dataset",
        reference="Mernyei, Cangea: Wiki-CS, a Wikipedia-Based Benchmark for Graph Neural Networks, 2020",
        license="MIT",
        format="wikics",
        num_nodes=11_701,
        num_features=300,
        num_classes=10,
        split="wikics20",
        class_names=(
            "Computational linguistics",
            "Databases",
            "Operating systems",
            "Computer architecture",
            "Computer security",
            "Internet protocols",
            "Computer file systems",
            "Distributed computing architecture",
            "Web technology",
            "Programming language topics",
        ),
        files=(
            File(
                "WikiCS/raw/data.json",
                ("https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/data.json",),
            ),
        ),
        note="The source publishes no checksum and no file was at hand to take it from, so the file is "
        "checked by its length and contents only. The number of edges is left open: DGL counts 431,726, with "
        "self-loops.",
        public_in_released_code=True,
    ),
    Facts(
        name="arxiv",
        title="ArXiv",
        description="Computer-science papers on arXiv joined by citations; mean word vectors as features.",
        source="https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv",
        reference="Hu et al.: Open Graph Benchmark, NeurIPS 2020",
        license="ODC-BY",
        format="ogb",
        num_nodes=169_343,
        num_edges=2_315_598,
        num_features=128,
        num_classes=40,
        split="ogb",
        class_names=tuple(f"cs.{area.upper()}" for area in _ARXIV_AREAS.split()),
        files=(
            _arxiv("raw/edge.csv.gz", "6128cfa34df9cfcbb12f89ddf7eb2ce48e3a25cd92ac2d2e32f741ce14e9a0a0"),
            _arxiv("raw/node-label.csv.gz", "a4ad230308d1b281556305b18c914d566842dcfd31e5a46c37d847cd4543ecfb"),
            _arxiv("raw/node-feat.csv.gz", None),
            _arxiv("split/time/train.csv.gz", "359a7161b0ce98b5c708d062ea549138c58367cbe9a55390e357ac732da96c9c"),
            _arxiv("split/time/valid.csv.gz", "4c8889545445ab355a98212d5ad5911eebffb129a1a96c35adb74fa9401990a7"),
            _arxiv("split/time/test.csv.gz", "587cfdb20bcbaeaffbb06924be93bf11f8a945e79e25508e21c8d3abc6a76921"),
        ),
        note="The features have no checksum on record (none is published, and no file was at hand), so they "
        "are checked by length and shape only.",
    ),
    Facts(
        name="imports",
        title="Imports",
        description="Modules of eight Python packages joined by imports; words of the source as features.",
        source="installed: numpy, scipy, scikit-learn, networkx, sympy, matplotlib, torch_geometric, joblib",
        reference="this package: ssge.datasets.imports",
        license="that of each package (BSD-3-Clause, MIT, and the license of Matplotlib)",
        format="imports",
        num_features=2_000,
        note="Built from installed files, which are parsed but never run; sizes depend on their versions.",
    ),
    Facts(
        name="digits",
        title="Digits",
        description="Handwritten digits joined to the most similar ones; 8 x 8 pixels as features.",
        source="sklearn.datasets.load_digits",
        reference="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI 1998",
        license="CC BY 4.0",
        format="digits",
        num_nodes=1_797,
        num_features=64,
        num_classes=10,
        class_names=tuple("0123456789"),
    ),
    Facts(
        name="karate",
        title="Karate club",
        description="Members of a karate club joined by friendship; each is its own feature.",
        source="networkx.karate_club_graph",
        reference="Zachary: An Information Flow Model for Conflict and Fission in Small Groups, 1977",
        license=_NO_LICENSE,
        format="karate",
        num_nodes=34,
        num_edges=156,
        num_features=34,
        num_classes=2,
        class_names=("Mr. Hi", "Officer"),
    ),
    Facts(
        name="sbm",
        title="Stochastic block model",
        description="A random graph of any size whose blocks shape both its edges and its features.",
        source="generated",
        reference="Holland, Laskey, Leinhardt: Stochastic Blockmodels, 1983",
        license="none needed",
        format="sbm",
        note="Options: nodes, classes, degree, features, homophily, feature_signal, seed.",
    ),
)

for _facts in _TABLE:
    DATASETS.add(_facts.name, _facts)


def facts_of(source: str) -> Facts | None:
    """Return the facts of the dataset that ``source`` names, with or without options; None if it names none."""
    name = source.partition(":")[0].strip()
    if name not in DATASETS:
        return None
    return DATASETS[name]
