#!/usr/bin/env python3
"""`sbnmt recipe`: raw text to a table of scores, all steps of a recipe."""

import clone

clone.run(__file__)
