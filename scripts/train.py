#!/usr/bin/env python3
"""`sbnmt train`: fairseq-train, also as one of torchrun's processes."""

import clone

clone.run(__file__)
