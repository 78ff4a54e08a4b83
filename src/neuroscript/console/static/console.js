// Behaviours of every page, selected by attributes. Pages can be read, and calls approved, without any of them.
//
//   form[data-live=URL][data-target=#id]   sends the form after each change, and shows the response in the target
//   form[data-search][data-target=#id]     the same by GET, and changes the address
//   [data-events=URL]                      receives the events of an activity
//   [data-refresh=URL][data-seconds=N]     loads its content again while the page is visible
//   [data-shortcut=KEY]                    is activated by a key
//   form button[data-run]                  is activated by Ctrl+Enter within the form
//   [data-copy=#id]                        copies the text of an element
//   [data-follow]                          is followed when the page is shown

const root = document.documentElement;
root.classList.add("has-script");

const csrf = () => document.body.dataset.csrf ?? "";
const PART = { "x-requested-with": "neuroscript" };

/** Replace the content of an element with HTML of this console, and start the behaviours in it. */
export function show(target, html) {
  const held = focusOf(target);
  target.innerHTML = html;
  restoreFocus(target, held);
  start(target);
}

function focusOf(target) {
  const active = document.activeElement;
  return target.contains(active) && active.id ? active.id : null;
}

function restoreFocus(target, id) {
  if (id) document.getElementById(id)?.focus({ preventScroll: true });
}

export function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer) announcer.textContent = text;
}

/** Fetch a part of a page; the address is left when the browser is no longer signed in. */
async function load(url, options = {}) {
  const response = await fetch(url, { ...options, headers: { ...PART, ...options.headers } });
  if (response.redirected && new URL(response.url).pathname.endsWith("/sign-in")) {
    location.assign(response.url);
    return null;
  }
  return response;
}

/** Call *run* after *wait* milliseconds without a further call. */
function debounced(run, wait = 150) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(run, wait, ...args);
  };
}

// Forms that are sent while the user types

/** Send each state of a form, show the newest response, and drop older ones. */
function sender(form, request) {
  const target = document.querySelector(form.dataset.target);
  let pending;
  return debounced(async () => {
    pending?.abort();
    const controller = (pending = new AbortController());
    target.setAttribute("aria-busy", "true");
    try {
      const response = await request(controller.signal);
      if (response === null || controller.signal.aborted) return;
      const text = await response.text();
      if (response.ok || response.status === 422) show(target, text);
      target.dispatchEvent(new CustomEvent("shown", { bubbles: true, detail: response }));
    } catch (error) {
      if (error.name !== "AbortError") announce("The console does not respond.");
    } finally {
      if (pending === controller) target.removeAttribute("aria-busy");
    }
  });
}

function startLive(form) {
  const send = sender(form, (signal) => {
    const body = new FormData(form);
    return load(form.dataset.live, { method: "POST", body, signal, headers: { "x-csrf-token": csrf() } });
  });
  form.addEventListener("input", send);
  form.addEventListener("change", send);
  form.addEventListener("live", send);
}

function startSearch(form) {
  const address = () => {
    const filled = [...new FormData(form)].filter(([, value]) => value !== "");
    const query = new URLSearchParams(filled).toString();
    return (form.getAttribute("action") || location.pathname) + (query ? `?${query}` : "");
  };
  const send = sender(form, (signal) => {
    history.replaceState(null, "", address());
    return load(address(), { signal });
  });
  form.addEventListener("input", send);
  form.addEventListener("change", send);
  addEventListener("pageshow", () => {
    // a browser that goes back restores the fields, also those that were changed just before it left the page
    if (new URL(address(), location.href).search !== location.search) send();
  });
}

// Events of activities

/** Apply the events of an activity. The stream is closed while the page is hidden, because connections are few. */
function startEvents(element) {
  let source;
  let ended = false;
  const url = new URL(element.dataset.events, location.href);
  let seen = Number(url.searchParams.get("after") ?? 0); // what the page contains already
  const open = () => {
    if (ended || source || document.hidden) return;
    url.searchParams.set("after", seen);
    source = new EventSource(url);
    source.onmessage = (message) => {
      seen = Number(message.lastEventId);
      apply(element, JSON.parse(message.data));
    };
    source.addEventListener("end", () => {
      ended = true;
      close();
      element.dispatchEvent(new CustomEvent("ended", { bubbles: true }));
      if (element.querySelector(".running")) location.reload(); // the last event was left out, because there were too many
    });
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) announce("The connection to the console was lost.");
      if (!element.isConnected) close();
    };
  };
  const close = () => {
    source?.close();
    source = undefined;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

function apply(element, event) {
  const target = event.target ? document.getElementById(event.target) : element;
  if (!target) return;
  if (event.mode === "replace") {
    show(target, event.html);
  } else {
    const template = document.createElement("template");
    template.innerHTML = event.html;
    const added = [...template.content.children];
    target.append(template.content);
    added.forEach(start);
  }
}

// Content that is loaded again

function startRefresh(element) {
  const milliseconds = Number(element.dataset.seconds || 2) * 1000;
  const tick = async () => {
    if (!element.isConnected) return;
    try {
      const response = document.hidden ? null : await load(element.dataset.refresh);
      if (response?.status === 200) {
        const html = await response.text();
        if (html !== element.lastHtml) {
          element.lastHtml = html;
          show(element, html);
          element.dispatchEvent(new CustomEvent("refreshed", { bubbles: true }));
        }
      }
    } catch {
      // the console may be starting again
    }
    setTimeout(tick, milliseconds);
  };
  setTimeout(tick, milliseconds);
}

// Keys and buttons

const isTyping = (element) => element?.closest?.("input, textarea, select, [contenteditable]") != null;

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  const button = event.target.closest?.("form")?.querySelector("[data-run]");
  if (!button) return;
  event.preventDefault();
  if (!button.disabled) button.click();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  const wanted = [...document.querySelectorAll("[data-shortcut]")].filter((each) => each.dataset.shortcut === event.key);
  const visible = wanted.find((each) => each.offsetParent !== null && !each.disabled);
  if (!visible) return;
  event.preventDefault();
  if (visible.matches("input, textarea, select, [data-shortcut-focus]")) visible.focus();
  else visible.click();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
  announce("Copied.");
});

const BEHAVIOURS = [
  ["form[data-live]", startLive],
  ["form[data-search]", startSearch],
  ["[data-events]", startEvents],
  ["[data-refresh]", startRefresh],
  ["a[data-follow]", (link) => location.replace(link.href)],
];

const started = new Map(BEHAVIOURS.map(([selector]) => [selector, new WeakSet()]));

/** Start the behaviours of an element and of what it contains, each once. */
export function start(element) {
  for (const [selector, run] of BEHAVIOURS) {
    const known = started.get(selector);
    const found = [...(element.matches?.(selector) ? [element] : []), ...(element.querySelectorAll?.(selector) ?? [])];
    for (const each of found.filter((each) => !known.has(each))) {
      known.add(each);
      run(each);
    }
  }
}

start(document.body);
