"""The stages that systems are made of, one file for each part of the way.

`question_analysis` and `turn_context` come before the first call; `passage_retrieval` and `model_claims` find what may
be said, as `findings`; what is in `draft` writes it, in one wave or two, has a model judge it meanwhile and sends it
through the gate. `quotation` shows a page's words until then; `claim_check` judges what somebody states; `concurrency`
runs calls at once.
"""

STAGES = ("query", "summarise", "generate", "split", "verify", "draft", "refine")
"""The names by which stages ask a model, in their order; settings may give each a model of its own."""
