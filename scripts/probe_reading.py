#!/usr/bin/env python3
"""`sbnmt probe-reading`: how much do the streams read of each other?."""

import clone

clone.run(__file__)
