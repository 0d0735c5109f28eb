"""What do drafts bring, and for which kind of text?"""
