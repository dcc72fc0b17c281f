"""How the extractive system chooses what to quote: pure steps, one noun a file, in the order of their use.

`answer_types` what kind of thing is asked for; `candidates` what could be quoted; `scoring` how well each answers;
`abstention` whether any does; `disagreement` which contradict each other; `choosing` what is said.
"""
