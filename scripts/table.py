#!/usr/bin/env python3
"""`sbnmt table`: the results table of a recipe's run."""

import clone

clone.run(__file__)
