"""The role `controller`: statuses, slipped pods, node memory and certificates, by one leader.

kopf's watches --+                         +--> statuses of policies and tenants
                 +--> cache (every replica) +--> labels of pods
periodic lists --+                         +--> memory of nodes        (the leader alone)
                                           +--> certificates
"""
