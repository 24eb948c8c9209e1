"""A simulated start of a backend: it takes options and does nothing."""


class Client:
    def __init__(self, options):
        self.options = options

    def local_devices(self):
        return []


def make_c_api_client(plugin_name, options=None, distributed_client=None):
    """Creates a client with the options."""
    assert (plugin_name, distributed_client) == ("cuda", None)
    return Client(options)
