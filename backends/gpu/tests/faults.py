#!/usr/bin/env python3
"""Plants faults in copies of the GPU kernels, one at a time, and shows that the conformance suite on the emulator finds each.

A fault is one or more exact replacements of text in one file of backends/gpu (faults/*.txt). The copy is built as the plugin simt is, with the build
tree's own commands, and gpu_plugin_trial runs cases on it under several orders of threads, warp widths and grid limits until one fails. The
unchanged plugin must pass under all of them.

    faults.py --build build/release                    # all of them, some minutes
    faults.py --build build/release --few 2            # two, others each day (--turn N: those of day N)
    faults.py --build build/release --only NAME
"""
import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
GPU = HERE.parent
SETTINGS = [
    {"QUIRE_SIMT_WARP": "32", "QUIRE_SIMT_ORDER": "greedy", "QUIRE_SIMT_GRID": "3"},
    {"QUIRE_SIMT_WARP": "64", "QUIRE_SIMT_ORDER": "greedy", "QUIRE_SIMT_GRID": "2"},
    {"QUIRE_SIMT_WARP": "32", "QUIRE_SIMT_ORDER": "random", "QUIRE_SIMT_SEED": "5", "QUIRE_SIMT_GRID": "1"},
    {"QUIRE_SIMT_WARP": "64", "QUIRE_SIMT_ORDER": "in-order"},
]
CASES = 361  # of a family: every pair of features meets
SECONDS = 150
FAULT = re.compile(r"^fault: (\S+)\nfile: (\S+)\nwhat: ([^\n]+)\n((?:<<<[^\n]*\n.*?\n>>>\n)+)", re.S | re.M)
HUNK = re.compile(r"<<<([^\n]*)\n(.*?)\n===\n(.*?)\n?>>>\n", re.S)  # "<<< FILE" where it is another file's


class Fault:
    def __init__(self, name, file, what, hunks):
        self.name, self.what, self.hunks = name, what, [(other.strip() or file, old, new) for other, old, new in HUNK.findall(hunks)]

    def texts(self):
        """The files with the fault. Text that stands there not once says that the fault must be written anew."""
        texts = {}
        for file, old, new in self.hunks:
            text = texts.get(file) or (GPU / file).read_text()
            if (count := text.count(old)) != 1:
                sys.exit(f"{self.name}: a text of it stands {count} times in {file}; allowed: once")
            texts[file] = text.replace(old, new)
        return texts


def read_faults():
    faults = []
    for path in sorted((HERE / "faults").glob("*.txt")):
        text = path.read_text()
        found = [Fault(*match.groups()) for match in FAULT.finditer(text)]
        if len(found) != len(re.findall(r"^fault:", text, re.M)):
            sys.exit(f"{path}: a fault in it can't be read")
        faults += found
    names = [fault.name for fault in faults]
    if len(set(names)) != len(names):
        sys.exit("two faults have one name")
    return faults


def includes(path, folder, seen=None):
    """The files of backends/gpu that a source includes, itself among them."""
    seen = set() if seen is None else seen
    if path in seen:
        return seen
    seen.add(path)
    for name in re.findall(r'#include "([^"]+)"', (folder / path).read_text()):
        inner = ((folder / path).parent / name).resolve()
        if inner.is_file() and inner.is_relative_to(folder):
            includes(str(inner.relative_to(folder)), folder, seen)
    return seen


class Builder:
    """Builds a copy of the plugin with the commands that built the plugin."""

    def __init__(self, build):
        self.build = build
        self.compile = {}  # source below backends/gpu: (command, object)
        for entry in json.loads((build / "compile_commands.json").read_text()):
            source, command = pathlib.Path(entry["file"]).resolve(), shlex.split(entry["command"])
            output = command[command.index("-o") + 1]
            if source.is_relative_to(GPU) and "quire_gpu_simt.dir" in output:
                self.compile[str(source.relative_to(GPU))] = (command, output, str(entry["file"]))
        if not self.compile:
            sys.exit(f"{build}: the plugin simt is not built there")
        target = "lib/quire/backends/quire_simt.so"
        lines = subprocess.run(["ninja", "-C", str(build), "-t", "commands", target], check=True, capture_output=True, text=True).stdout.splitlines()
        links = [part for line in lines for part in line.split(" && ") if f"-o {target}" in part]
        self.link, self.target = shlex.split(links[-1]), target

    def make(self, fault):
        folder = self.build / "gpu_faults" / fault.name
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("gpu", "simt"):
            shutil.copytree(GPU.parent / name, folder / name, ignore=shutil.ignore_patterns("tests", "bench"))
        texts = fault.texts()
        for file, text in texts.items():
            (folder / "gpu" / file).write_text(text)
        link, running = list(self.link), []
        for source, (command, output, named) in self.compile.items():
            if not includes(source, GPU) & set(texts):
                continue
            made = str(folder / (pathlib.Path(source).name + ".o"))
            exchange = {output: made, output + ".d": made + ".d", named: str(folder / "gpu" / source)}
            command = [exchange.get(word, word) for word in command] + ["-Wno-error"]
            running.append(subprocess.Popen(command, cwd=self.build, stderr=subprocess.PIPE, text=True))
            link = [made if word == output else word for word in link]
            if len(running) % 2 == 0:
                self.wait(fault, running[-2:])
        if not running:
            sys.exit(f"{fault.name}: no source includes its files")
        self.wait(fault, running[len(running) // 2 * 2:])
        plugin = str(folder / "quire_simt.so")
        link = [plugin if word == self.target else word for word in link]
        self.wait(fault, [subprocess.Popen(link, cwd=self.build, stderr=subprocess.PIPE, text=True)])
        return plugin

    @staticmethod
    def wait(fault, running):
        for process in running:
            errors = process.communicate()[1]
            if process.returncode != 0:
                sys.exit(f"{fault.name}: does not compile:\n{errors}")


def trial(build, plugin, setting):
    """What was found, empty where nothing was."""
    command = [str(build / "bin" / "gpu_plugin_trial"), plugin, str(CASES), "0"]
    try:
        done = subprocess.run(command, env={"PATH": "/usr/bin:/bin", **setting}, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"does not end in {SECONDS} s"
    if done.returncode == 0:
        if ", 0 unsupported" not in done.stdout or "cut short" in done.stdout:
            sys.exit(f"not everything ran: {done.stdout}")
        return ""
    if done.returncode < 0:
        return f"ends by signal {-done.returncode}"
    if done.returncode != 3:
        sys.exit(f"{plugin}: no trial: {done.stdout}{done.stderr}")
    return next(line for line in done.stdout.splitlines() if not line.startswith("SIMT emulator"))


def words(setting):
    return " ".join(f"{name.removeprefix('QUIRE_SIMT_').lower()}={value}" for name, value in setting.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--few", type=int, default=0, help="so many faults; 0: all")
    parser.add_argument("--turn", type=int, default=int(time.time()) // 86400, help="which few; the day where it is not given")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    build = options.build.resolve()

    faults = read_faults()
    for fault in faults:
        fault.texts()  # each can still be planted, also those whose turn it is not
    known = len(faults)
    if options.only:
        faults = [fault for fault in faults if fault.name in options.only]
    elif options.few > 0:
        first = options.turn * options.few % len(faults)
        faults = (faults + faults)[first:first + options.few]
    builder = Builder(build)
    for setting in SETTINGS:
        if found := trial(build, str(build / builder.target), setting):
            sys.exit(f"the unchanged plugin fails ({words(setting)}): {found}")
    print(f"the unchanged plugin passes under {len(SETTINGS)} settings", flush=True)
    missed = []
    for fault in faults:
        begin = time.monotonic()
        plugin = builder.make(fault)
        for setting in SETTINGS:
            if found := trial(build, plugin, setting):
                print(f"{fault.name}: found ({words(setting)}): {found[:160]} [{time.monotonic() - begin:.1f} s]", flush=True)
                break
        else:
            print(f"{fault.name}: MISSED: {fault.what}", flush=True)
            missed.append(fault.name)
        shutil.rmtree(pathlib.Path(plugin).parent)
    print(f"{len(faults) - len(missed)} of {len(faults)} planted faults found ({known} known)")
    return 1 if missed or not faults else 0


if __name__ == "__main__":
    sys.exit(main())
