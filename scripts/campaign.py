#!/usr/bin/env python3
"""`sbnmt campaign`: attempts to make the other steps lose something."""

import clone

clone.run(__file__)
