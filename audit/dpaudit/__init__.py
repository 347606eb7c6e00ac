"""dpaudit"""
