#!/usr/bin/env python3
"""`sbnmt trace-page`: one page that shows how the two beams met."""

import clone

clone.run(__file__)
