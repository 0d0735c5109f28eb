"""How much do drafts gain, and for which kind of text?"""
