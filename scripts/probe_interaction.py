#!/usr/bin/env python3
"""`sbnmt probe-interaction`: does the interaction matter?."""

import clone

clone.run(__file__)
