"""Files of extended sets in the authors' format, with invented words, for tests."""

SIZES = {"NEG-1500-SIMP-GEN": 750, "NEG-1500-SIMP-TEMP": 770, "ROLE-1500": 750}
"""Name of a set -> pairs of sentences in the authors' file."""

FILES = dict(zip(("neg1500_gen", "neg1500_temp", "role1500"), SIZES, strict=True))
"""Task -> name of its set."""


def write_set(folder, name, pairs=None):
    """Writes the file of a set, as long as the authors' or with fewer pairs.

    In every fifth pair of ROLE-1500, the two sentences have the same verb.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for i in range(pairs or SIZES[name]):
        if name.startswith("ROLE"):
            first, second = f"noun{i % 40}", f"person{i % 30}"
            lines.append(f"the cook saw which {first} the {second} had called{i},\n")
            verb = f"{'paid' if i % 5 else 'called'}{i}"
            lines.append(f"The cook saw which {second} the {first} had {verb},\n")
        else:
            lines += [f"A thing{i} is a kind{i % 60},\n", f"A thing{i} is not a part{i % 50},\n"]
    path = folder / f"{name}.txt"
    path.write_text("".join(lines), "utf-8")
    return path
