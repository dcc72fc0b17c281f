"""The stages that systems consist of.

`question_analysis` and `turn_context` come before the first call; `passage_retrieval` and `model_claims` collect
`findings`; `draft` writes the answer in one wave or two, has a model judge it meanwhile and sends it through the gate.
`quotation` shows a quotation until then; `claim_check` judges statements by users; `concurrency` runs calls at once.
"""

STAGES = ("query", "summarise", "generate", "split", "verify", "draft", "refine")
"""The names by which stages ask a model, in their order; settings may give each a model of its own."""
