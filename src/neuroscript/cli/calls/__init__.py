"""Commands that call tools: ``call``, ``execute``, ``approve`` and ``replay``."""
