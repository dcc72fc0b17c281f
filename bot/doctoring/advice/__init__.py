"""Which settings follow from what was measured. Pure: each piece of advice is a function of figures and settings.

`facts` what it follows from; `formats` how to ask; `judgements` what the model cannot do; `times` how long and how much
at once; `advising` all of it in order. Thresholds are ours: below them a person would notice.
"""
