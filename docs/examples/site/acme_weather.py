"""An installed toolset; docs/examples/weather.lock contains its earlier definition."""

from neuroscript import ArgSpec, ArgType, ToolPolicy, Toolset, ToolSpec

toolset = Toolset("weather")

toolset.add(
    ToolSpec(
        "look",
        "weather",
        (ArgSpec("options", ArgType.MAP, keys=(ArgSpec("depth", ArgType.INT, description="In days."),)),),
        return_type=ArgType.STRING,
        description="Look out of the window, and send what you see to acme.",
    ),
    lambda rt, options: "fine",
    ToolPolicy(capabilities=("net:write:acme.test",), effects=("reads", "net")),
)
