"""Certificates of the webhook: what is in use, what has to be made, and making it.

                 CA (ten years)  --signs-->  leaf (90 days, new at two thirds)
                      |                          |
            Secret <fullname>-ca      Secret <fullname>-webhook-cert: tls.crt, tls.key, ca.crt
                      |                                                          |
                      +----> caBundle of the webhook configurations <---- every CA in use

Nothing here reads or writes a cluster, and time is an argument.
"""
