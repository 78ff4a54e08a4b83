"""Sixty strings that execute a script if a page writes them without escaping, and what detects that."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

import attrs
from playwright.sync_api import BrowserContext, Page

CONTEXTS: Final = {
    "text": "<div>%s</div>",
    "double": '<input value="%s">',
    "single": "<input value='%s'>",
    "unquoted": "<input value=%s>",
    "link": '<a href="%s">link</a>',
    "title": "<title>%s</title>",
    "textarea": "<textarea>%s</textarea>",
    "option": "<select><option>%s</option></select>",
    "string": '<script>var text = "%s";</script>',
    "template": "<script>var text = `%s`;</script>",
    "handler": "<button onclick=\"console.debug('%s')\">press</button>",
    "data": '<script type="application/json">{"text": "%s"}</script>',
    "style": "<style>p { content: '%s' }</style>",
    "comment": "<!-- %s -->",
    "picture": "<svg><title>%s</title></svg>",
    "attribute": "<p data-%s>text</p>",
}
"""Where a page may write a string, by name; ``%s`` stands for the text, without escaping."""

DECODERS: Final = {"escaped": html.unescape, "encoded": unquote}
"""Contexts in which a string is decoded, and then written as the content of an element."""

TEXTS: Final = {
    "text": (
        "<script>__xss(N)</script>",
        "<ScRiPt>__xss(N)</sCrIpT>",
        "<script/x>__xss(N)</script/x>",
        "<script\n>__xss(N)</script\n>",
        '<script src="data:text/javascript,__xss(N)"></script>',
        "<script type=module>__xss(N)</script>",
        "<script>alert(N)</script>",
        "<img src=x onerror=__xss(N)>",
        "<img/src/onerror=__xss(N)>",
        "<image src=x onerror=__xss(N)>",
        "<img\fsrc=x\fonerror=__xss(N)>",
        "<img src=x onerror=\\u005f_xss(N)>",
        "<img src=x onerror=&#95;_xss(N)>",
        "<img src=x onerror=\"Function('__x'+'ss(N)')()\">",
        "<img src=x onerror=location='javascript:__xss(N)'>",
        "<input type=image src=x onerror=__xss(N)>",
        "<svg onload=__xss(N)>",
        "<svg/onload=window[`__xss`](N)>",
        "<svg><script>__xss(N)</script></svg>",
        "<svg><animate onbegin=__xss(N) attributeName=x dur=1s>",
        "<svg><image href=x onerror=__xss(N)>",
        '<svg><a href="javascript:__xss(N)"><text y=20>link</text></a></svg>',
        "<body onload=__xss(N)>",
        "<details open ontoggle=__xss(N)>x",
        "<input autofocus onfocus=__xss(N)>",
        "<x contenteditable autofocus onfocus=__xss(N)>x",
        "<video src=x onerror=__xss(N)></video>",
        "<video><source onerror=__xss(N)></video>",
        "<style onload=__xss(N)></style>",
        '<iframe src="javascript:top.__xss(N)"></iframe>',
        '<iframe srcdoc="<script>top.__xss(N)</script>"></iframe>',
        "<iframe onload=__xss(N)></iframe>",
        "<style>@keyframes x{}</style><b style=animation-name:x onanimationstart=__xss(N)>x</b>",
        "<a href=javascript:__xss(N)>link</a>",
        '<a href="&#106;ava&#9;script:__xss(N)">link</a>',
        "<form><button formaction=javascript:__xss(N)>press</button></form>",
        "<button popovertarget=pN>press</button><b popover id=pN onbeforetoggle=__xss(N)>x</b>",
        '<noscript><p title="</noscript><img src=x onerror=__xss(N)>">',
        "<math><mtext><img src=x onerror=__xss(N)>",
        '<xmp><p title="</xmp><svg/onload=__xss(N)>">',
        "<!--><img src=x onerror=__xss(N)>-->",
        "<![CDATA[><img src=x onerror=__xss(N)>]]>",
        "<?x><img src=x onerror=__xss(N)>",
    ),
    "double": ('"><script>__xss(N)</script>', '" autofocus onfocus="__xss(N)'),
    "single": ("'><img src=x onerror=__xss(N)>", "' autofocus onfocus='__xss(N)"),
    "unquoted": ("x autofocus onfocus=__xss(N)",),
    "link": ("javascript:__xss(N)", "\x01 JaVa\tScRiPt://%0a__xss(N)"),
    "title": ("</title><script>__xss(N)</script>",),
    "textarea": ("</textarea><img src=x onerror=__xss(N)>",),
    "string": ('";__xss(N);//', "</script><svg onload=__xss(N)>"),
    "template": ("${__xss(N)}",),
    "handler": ("');__xss(N);//",),
    "style": ("</style><script>__xss(N)</script>",),
    "comment": ("--!><img src=x onerror=__xss(N)>",),
    "escaped": ("&lt;script&gt;__xss(N)&lt;/script&gt;",),
    "encoded": ("%3Cscript%3E__xss(N)%3C/script%3E",),
}
"""Strings by the context in which they execute a script; ``N`` stands for their number."""


@attrs.frozen
class Payload:
    """A string that executes a script in a page that writes it without escaping.

    Attributes:
        number: Passed to ``__xss`` or ``alert``, so that an execution names its payload.
        context: Where it does so: a key of `CONTEXTS` or of `DECODERS`.
    """

    number: int
    text: str
    context: str

    @property
    def page(self) -> str:
        """A page that writes the text without escaping."""
        text = DECODERS[self.context](self.text) if self.context in DECODERS else self.text
        return "<!doctype html><body>" + CONTEXTS.get(self.context, CONTEXTS["text"]).replace("%s", text)


def _payloads() -> Iterator[Payload]:
    rows = [(text, context) for context, texts in TEXTS.items() for text in texts]
    for number, (text, context) in enumerate(rows, 1):
        yield Payload(number, re.sub(r"N\b", str(number), text), context)


PAYLOADS: Final = tuple(_payloads())

SCRIPT: Final = """
window.__xss = (number) => console.debug(`executed ${number}`);
document.addEventListener("securitypolicyviolation", (event) =>
  console.debug(`blocked ${event.effectiveDirective} ${event.sample || event.blockedURI}`));
"""
"""Runs in each document before its own scripts."""

FOREIGN_PARTS: Final = """() => {
  const found = [];
  const known = "a abbr article aside body br button caption circle code col colgroup dd defs del details desc dialog div dl dt em " +
    "fieldset figcaption figure footer form g h1 h2 h3 h4 h5 h6 head header hr html img input ins kbd label legend li line " +
    "link main marker menu meta meter nav noscript ol optgroup option output p path polygon polyline pre progress rect s samp " +
    "script search section select small span strong sub summary sup svg table tbody td template text textarea tfoot th thead " +
    "time title tr tspan u ul use datalist b i q bdi";
  const names = new Set(known.split(" "));
  const addresses = new Set(["href", "src", "action", "formaction", "data", "srcdoc", "xlink:href", "poster", "srcset"]);
  for (const element of document.querySelectorAll("*")) {
    if (!names.has(element.localName)) found.push(`<${element.localName}>`);
    if (element.localName === "script" && !element.src && element.type !== "application/json") found.push("script");
    if (element.localName === "meta" && element.httpEquiv) found.push("meta");
    for (const {name, value} of element.attributes) {
      if (name.startsWith("on") || name === "style" || name === "autofocus" || !/^[a-zA-Z:-]+[0-9]?$/.test(name)) found.push(name);
      if (addresses.has(name) && new URL(value, location.href).origin !== location.origin) found.push(`${name}=${value}`);
    }
  }
  return found;
}"""
"""Returns elements and attributes that no template of the console contains."""


@attrs.define
class ExecutionWatcher:
    """Collects what strings of others execute, or try to, in the pages of a context.

    Attributes:
        events: ``executed N`` for each execution, and ``blocked DIRECTIVE …`` for each that the policy of the page
            prevents.
    """

    context: BrowserContext
    events: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.context.add_init_script(SCRIPT)
        self.context.on("console", lambda message: self._log(message.text))
        self.context.on("dialog", lambda dialog: self._close(dialog))

    def _log(self, text: str) -> None:
        if text.startswith(("executed ", "blocked ")):
            self.events.append(text)

    def _close(self, dialog: Any) -> None:
        self.events.append(f"executed {dialog.message}")
        dialog.dismiss()

    def take(self) -> list[str]:
        """Return the events until now, and forget them."""
        events, self.events = self.events, []
        return events


def press_everything(page: Page) -> None:
    """Activate the links and buttons of a page without a server."""
    page.evaluate("""() => {
      for (const each of document.querySelectorAll("a, button")) {
        each.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
      }
    }""")


def hostile(place: str, payloads: tuple[Payload, ...], separator: str = " ") -> str:
    """Return a string that names its place, so that a page shows whether it contains it, followed by payloads."""
    return separator.join([f"at-{place}-at", *(each.text for each in payloads)])


def places_in(text: str) -> set[str]:
    """Return the places whose strings a page contains."""
    return set(re.findall(r"at-([\w-]+?)-at", text))


def data_url(page: str) -> str:
    """Return the address of a page without a server."""
    return f"data:text/html,{quote(page)}"


def as_json(value: object) -> str:
    """Return JSON with characters beyond ASCII as they are."""
    return json.dumps(value, ensure_ascii=False)
