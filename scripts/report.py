#!/usr/bin/env python3
"""`sbnmt report`: the paper's analyses of any outputs as one page."""

import clone

clone.run(__file__)
