"""The stages that systems are made of, one file for each part of the way.

`scene` what all stages need to know; `quoting` what is shown meanwhile; `looking_up` query, retrieval, summaries;
`recalling` what the model says by itself, and its claims; `claiming` and `weighing` the same as it arrives; `verifying`
claims against evidence; `writing` draft and refinement; `saying` through the gate; `together` runs several at once.
"""

STAGES = ("query", "summarise", "generate", "split", "verify", "draft", "refine")
"""The names by which stages ask a model, in their order; settings may give each a model of its own."""
