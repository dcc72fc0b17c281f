"""Labelled claims with the evidence they were judged by: read, judged by verifiers, measured."""
