"""The process that answers the API server about pods that are being created.

TLS request -> exchange -> kopf's handler -> reviewer -> core -> verdict -> response
                                                |
                       copies of policies, tenants and namespaces, or an uncached read
"""
