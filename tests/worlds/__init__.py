"""Generators of edits and images, by what they know of the namespace that they write for.

``author`` with the deeds of ``*_deeds`` writes random logs on a real namespace, ``checkpoint`` an
image and a log of one seed.  ``scribe`` writes edits about snapshots, and does to a model what they
mean.  ``any_op`` draws single edits by the types of their fields.  ``large`` calculates images and
logs of any size in little memory.  ``files`` puts what they give into files.
"""
