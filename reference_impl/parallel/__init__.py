"""How is one model split over several devices?"""
