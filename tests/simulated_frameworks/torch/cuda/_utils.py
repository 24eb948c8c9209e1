import torch


def _get_device_index(device, optional=False):
    assert optional or device is not None
    return torch.cuda._current if device is None else int(str(device).rpartition(":")[2])
