#!/usr/bin/env python3
"""`sbnmt rerank`: Rerank-NMT: both teachers propose and choose."""

import clone

clone.run(__file__)
