"""``neuroscript isolation``: what confines isolated tools on this machine."""
