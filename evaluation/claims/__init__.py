"""Read labelled claims with their evidence, judge them with verifiers, and measure the verdicts."""
