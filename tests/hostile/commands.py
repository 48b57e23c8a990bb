"""Command lines, files of settings and places to write to."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.case import Case, Content

FIT = ("fit", "karate", "--out", "run", "--epochs", "1", "--widths", "4", "--quiet")
LONG = "x" * 1_000_000

FLAGS: dict[tuple[str, ...], str | None] = {
    ("--seed", "-1"): "seed must be 0",
    ("--seed", "9" * 30): "seed must be 0",
    ("--seed", "9" * 5000): "seed",
    ("--threads", "0"): "--threads must be 1",
    ("--threads", "-3"): "--threads must be 1",
    ("--threads", "100000"): "--threads must be 1",
    ("--device", "cuda:99"): "device",
    ("--device", "meta"): "device 'meta' cannot be used",
    ("--device", LONG): "device",
    ("--dtype", "float16"): "dtype",
    ("--method", "gpt"): "Unknown method 'gpt'",
    ("--method", "../ssge"): "Unknown method",
    ("--method", LONG): "Unknown method",
    ("--recipe", "nope"): "Unknown recipe 'nope'",
    ("--recipe", "../../etc/passwd"): "Unknown recipe",
    ("--recipe", "none.toml"): "No such file: none.toml",
    ("--config", "none.toml"): "No such file: none.toml",
    ("--config", "."): "No such file",
    ("--config", "/dev/zero"): "/dev/zero",
    ("--config", "/dev/null/x"): "/dev/null/x|No such file",
    ("--warm-start", "nowhere"): "No such run: nowhere",
    ("--warm-start", "run"): "--out must be another folder than --warm-start",
    ("--checkpoint-every", "-1"): "checkpoint_every must be 0 or more",
    ("--epochs", "-1"): "--epochs",
    ("--epochs", "1e3"): "epochs",
    ("--widths", "0"): "--widths",
    ("--widths", "-4"): "--widths",
    ("--widths", "99999999999"): "Training needs about|--widths",
    ("--widths", "9" * 40): "--widths|Training needs",
    ("--widths", "x"): "widths",
    ("--lr", "nan"): "--lr|not finite",
    ("--lr", "-1"): "--lr",
    ("--lr", "inf"): "--lr|not finite",
    ("--edge-drop", "2"): "--edge-drop",
    ("--edge-drop", "nan"): "--edge-drop",
    ("--edge-drop", "-0.1"): "--edge-drop",
    ("--dim", "64"): "Did you mean --widths",
    ("--hidden", "64"): "Did you mean --widths",
    ("--edge-drp", "0.1"): "Did you mean --edge-drop",
    ("--nodes", "x.csv"): "only for a graph of your own",
    ("--bogus",): "Unknown option",
    ("--" + LONG, "1"): "Unknown option",
    ("nodes.csv",): "A table of nodes is given as --nodes nodes.csv",
    ("\x1b[2J",): "Unexpected argument",
    ("--seed", "1\0"): "NUL",
    ("--seed",): "seed",
    ("--seed", "1.5"): r"--seed must be a whole number; received 1\.5",
    ("--checkpoint-every", "3.7"): r"--checkpoint-every must be a whole number; received 3\.7",
    ("--widths", "4", "4.5"): r"--widths must be a whole number; received 4\.5",
    ("--threads", "1.0"): r"--threads must be a whole number; received 1\.0",
}  # fmt: skip
OUTS: dict[str, str] = {
    "/dev/null": "is not a folder",
    "/dev/null/x": "/dev/null/x",
    "/proc/self/x": "/proc/self/x|No such",
    "file": "is not a folder",
    "file/x": "file/x|Not a directory",
    "link": "link|loop|symbolic",
    "x" * 300: "name too long",
    "a\0b": "NUL",
}
GRAPHS: dict[str, str] = {
    "karat": "Did you mean 'karate'",
    "": "is a folder without Parquet files",
    ".": "is a folder without Parquet files",
    "/dev/null": "No such file|empty",
    "/dev/zero": "No such file|/dev/zero",
    "nowhere.csv": "No such file: nowhere.csv",
    "http://127.0.0.1/x.csv": "No such file|Unknown dataset",
    "sbm:nodes=-1": "nodes",
    "sbm:nodes=0": "nodes",
    "sbm:nodes=1000000000000": "nodes|memory",
    "sbm:nodes=x": "nodes",
    "sbm:nods=3": "nodes",
    "sbm:nodes": "Options of a dataset are",
    "sbm:classes=0": "classes",
    "sbm:nodes=10,classes=99": "classes",
    "sbm:features=-1": "features",
    "karate:nodes=3": "has no options",
    "x" * 1_000_000: "Unknown dataset|name too long|No such",
    "\x1b[2J": "Unknown dataset|No such",
    "../../etc/passwd": "passwd|No such|Unknown",
}
CONFIGS: dict[str, tuple[Content, str | None]] = {
    "plain": ("epochs = 1\n", None),
    "empty": ("", None),
    "unknown setting": ("epoch = 1\n", "Unknown setting of ssge 'epoch'. Did you mean 'epochs'"),
    "wrong type": ('epochs = "many"\n', "epochs"),
    "negative": ("epochs = -1\n", "epochs"),
    "5,000 digits": (f"epochs = {'9' * 5000}\n", "TOML"),
    "nan": ("lr = nan\n", "lr"),
    "infinite": ("lr = inf\n", "lr|not finite"),
    "a table": ("[epochs]\na = 1\n", "epochs"),
    "deeply nested": ("a = " + "[" * 50_000, "TOML"),
    "deep tables": ("a = " + "{b = " * 5_000, "TOML"),
    "a key of 10,000 parts": (".".join(["a"] * 10_000) + " = 1\n", "keys of more than"),
    "2 MB": ("# " + "x" * 2_000_000, "more than 1,048,576 bytes"),
    "not TOML": ("epochs: 1\n", "cannot be read as TOML"),
    "JSON": ('{"epochs": 1}', "cannot be read as TOML"),
    "not UTF-8": (b"epochs = \xff", "cannot be read as TOML"),
    "UTF-16": ("epochs = 1\n".encode("utf-16"), "cannot be read as TOML"),
    "twice": ("epochs = 1\nepochs = 2\n", "cannot be read as TOML"),
    "noise": (bytes(range(256)), "cannot be read as TOML"),
    "a name with escapes": ('"\\u001b[2J" = 1\n', "Unknown setting"),
    "a name of 100 kB": (f"{'x' * 100_000} = 1\n", "Unknown setting"),
    "dates": ("epochs = 2020-01-01\n", "epochs"),
}
RECIPES: dict[str, tuple[Content, str]] = {
    "empty": ("", "is not a recipe"),
    "no method": ('dataset = "karate"\n', "is not a recipe"),
    "unknown method": ('method = "gpt"\ndataset = "karate"\n', "Unknown method"),
    "unknown dataset": ('method = "ssge"\ndataset = "nope"\n', "Unknown dataset|nope"),
    "unknown protocol": ('method = "ssge"\ndataset = "karate"\nprotocol = "x"\n', "Unknown protocol"),
    "more": ('method = "ssge"\ndataset = "karate"\nmore = 1\n', "is not a recipe"),
    "name": ('name = "own"\nmethod = "ssge"\ndataset = "karate"\n', "not a recipe: .*its name is that of the file"),
    "unknown setting": ('method = "ssge"\ndataset = "karate"\n[config]\nepoch = 1\n', "Unknown setting"),
    "published is text": ('method = "ssge"\ndataset = "karate"\n[published]\naccuracy = "x"\n', "is not a recipe"),
    "not TOML": ("method: ssge", "cannot be read as TOML"),
}
LINES: dict[tuple[str, ...], str | None] = {
    ("fti",): 'Did you mean "fit"',
    ("",): ".",
    (LONG,): ".",
    ("\x1b[2J",): ".",
    ("fit",): "fit|requires|missing|GRAPH",
    ("fit", "karate"): "--out",
    ("ls", "method"): "methods",
    ("ls", "recipes", "more"): "Unexpected argument",
    ("evaluate", "nowhere"): "No such run: nowhere",
    ("evaluate", "."): "No run in",
    ("evaluate", "nowhere", "--protocol", "papers"): "Did you mean 'paper'",
    ("embed", "nowhere", "karate", "--out", "x.csv"): "No such run: nowhere",
    ("embed", "nowhere", "karate", "--out", "x.xlsx"): "Unknown ending of an embedding file '.xlsx'",
    ("embed", "nowhere", "karate"): "--out",
    ("classify", "nowhere", "--labels", "x.csv"): "No such run or file",
    ("cluster", "nowhere", "-k", "x"): "k",
    ("run", "ssge/coar"): "Did you mean 'ssge/cora'",
    ("run", "none.toml"): "No such file",
    ("run", "ssge/cora", "--seeds", "0"): "seeds",
    ("run", "ssge/cora", "--seeds", "-1"): "seeds",
    ("estimate", "karate", "--widths", "0"): "--widths",
    ("estimate", "nowhere.csv"): "No such file",
    ("demo", "--seeds", "0", "--quiet"): "seeds",
    ("demo", "--out", "/dev/null", "--quiet"): "/dev/null",
}


def cases() -> Iterator[Case]:
    for words, says in FLAGS.items():
        yield Case(f"fit {' '.join(words)[:40]}", (*FIT, *words), {}, says)
    for out, says in OUTS.items():
        files: dict[str, Content] = {"file": "mine"}
        if out == "link":
            files["link"] = lambda path: path.symlink_to("link")
        yield Case(f"--out {out[:40]!r}", ("fit", "karate", "--out", out, "--epochs", "1", "--quiet"), files, says)
    for graph, says in GRAPHS.items():
        yield Case(f"fit {graph[:40]!r}", ("fit", graph, *FIT[2:]), {}, says)
    for name, (content, wrong) in CONFIGS.items():
        words = ("fit", "karate", "--config", "c.toml", "--out", "run", "--widths", "4", "--quiet")
        if wrong is None:
            words += ("--epochs", "1")
        yield Case(f"config, {name}", words, {"c.toml": content}, wrong, -1 if wrong is None else None)
    for name, (content, says) in RECIPES.items():
        words = ("run", "r.toml", "--seeds", "1", "--out", "runs", "--quiet")
        yield Case(f"recipe, {name}", words, {"r.toml": content}, says)
    for line, expected in LINES.items():
        yield Case(f"ssge {' '.join(line)[:60]}", line, {}, expected)
