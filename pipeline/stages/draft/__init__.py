"""Drafting a reply: its sentences, judged while the next is written, in one wave or in two."""
