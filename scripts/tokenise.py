#!/usr/bin/env python3
"""`sbnmt tokenise`: tokenise a text, or undo it."""

import clone

clone.run(__file__)
