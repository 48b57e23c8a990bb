"""The command that makes a graph folder: convert."""

from pathlib import Path

from ssge.cli.options import AS_FOUND, TRAIN, Json, Quiet, Reading, Switch, command, set_up
from ssge.terminal import print_json


@command(
    TRAIN,
    "ssge convert edges.parquet --nodes nodes.parquet --out graph",
    "ssge convert edges.csv.gz --nodes nodes.csv --memory 8GB --out graph",
    "ssge fit graph --memory 2GB --out run",
)
def convert(
    graph: str,
    /,
    *,
    out: Path,
    memory: str = "2GB",
    force: Switch = False,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
) -> None:
    """Convert a graph to a folder of memory-mapped arrays, from which graphs larger than memory are trained.

    Tables of edges and nodes may have any size. fit, embed and estimate take the folder in the place of the tables.

    Parameters
    ----------
    graph
        Table of edges (CSV, TSV, Parquet; also .gz, .zst), with --nodes. Any other graph that fit takes is read into
        memory first.
    out
        Folder to write.
    memory
        Memory to stay below while tables are converted.
    force
        Replace a graph folder.
    """
    set_up(quiet)
    from ssge.experiments.sources import is_dataset, open_graph
    from ssge.io.convert import convert as converted
    from ssge.io.graph_writer import check_target, write_graph
    from ssge.io.sizes import bytes_of, in_words

    limit = bytes_of(memory, "--memory")
    if is_dataset(graph) or not Path(graph).exists():
        check_target(out, force)
        stored = write_graph(open_graph(graph, reading.given()), out, force)
    else:
        stored = converted(Path(graph), out, reading, force, limit)
    n, m, p, _ = stored.info
    size = sum(file.stat().st_size for file in out.iterdir())
    if json:
        print_json({"nodes": n, "edges": m, "features": p, "bytes": size, "folder": str(out)})
    else:
        print(f"{n:,} nodes, {m:,} directed edges, {p:,} features in {in_words(size)}: {out}")
