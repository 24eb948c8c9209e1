"""Listening: who may hold a connection, for how long, and who makes room when all places are taken.

aiohttp ends connections that idle after an answer. It has no deadline for a handshake, a head or a
body, no bound on connections or on what they hold, and nothing by address: without these, whoever
reaches a port can keep everybody else from it.
"""
