#!/usr/bin/env python3
"""`sbnmt binarise`: texts to a data folder, R2L texts included."""

import clone

clone.run(__file__)
