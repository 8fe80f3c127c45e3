#!/usr/bin/env python3
"""`sbnmt triples`: training triples of gold text and pseudo targets."""

import clone

clone.run(__file__)
