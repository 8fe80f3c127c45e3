#!/usr/bin/env python3
"""`sbnmt aer`: word alignment error rate of a model's attention."""

import clone

clone.run(__file__)
