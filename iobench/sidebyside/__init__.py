"""``make bench``: this package beside its peers, on one machine, in one run.

Every figure is a ratio: contenders of a contest run one after the other, each in a process of its
own, in an order that moves on by one each round, and are compared within rounds. ``contest`` says
what is compared, ``rounds`` runs it, ``table`` writes it down.
"""
