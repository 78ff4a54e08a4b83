// The inbox: what changes while the page is open, keys, and notifications. Without it, the page works when loaded again.
//
// The list never moves: new requests are announced above it, and ended ones stay in their place, without buttons.

const box = document.querySelector("[data-approvals]");
const known = new Set(box.dataset.known.split(" ").filter(Boolean));
const announced = new Set(known);
const title = document.title.replace(/^\(\d+\) /, "");
const news = box.querySelector("[data-news]");
const notifying = box.querySelector("[data-notify]");

const announce = (text) => (document.getElementById("announcer").textContent = text);
const cards = () => [...box.querySelectorAll("[data-request]")];

// Changes

let source;

function open() {
  if (source || (document.hidden && !wantsNotifications())) return;
  source = new EventSource(box.dataset.approvals);
  source.onmessage = (message) => update(JSON.parse(message.data));
}

function close() {
  source?.close();
  source = undefined;
}

function update(state) {
  if (news) document.title = (state.count ? `(${state.count}) ` : "") + title;
  const waiting = new Set(state.waiting.map((each) => each.id));
  for (const card of cards()) {
    const id = card.dataset.request;
    if (state.ended[id]) end(card, state.ended[id]);
    else if (!waiting.has(id) && state.count <= waiting.size) end(card, "This call no longer waits; it was answered elsewhere.");
  }
  const added = state.waiting.filter((each) => !known.has(each.id));
  if (news) {
    news.hidden = added.length === 0;
    news.textContent = added.length === 1 ? "Show 1 new request" : `Show ${added.length} new requests`;
  }
  for (const each of added.filter((each) => !announced.has(each.id))) {
    announced.add(each.id);
    announce(`${each.tool} waits for an approval.`);
    if (document.hidden && wantsNotifications()) notify(each);
  }
}

/** Show how a request ended. Its buttons no longer work, and stay where they are. */
function end(card, text) {
  const state = card.querySelector(".approval-state");
  if (state.textContent === text) return;
  state.textContent = text;
  card.classList.add("ended");
  for (const each of card.querySelectorAll("fieldset")) each.disabled = true;
}

document.addEventListener("visibilitychange", () => (document.hidden && !wantsNotifications() ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);

// Notifications: the browser asks the user only after the button was pressed

function wantsNotifications() {
  return typeof Notification !== "undefined" && Notification.permission === "granted";
}

function notify(request) {
  const shown = new Notification("A call waits for approval", { body: request.tool, tag: request.id });
  shown.onclick = () => {
    window.focus();
    location.assign(news?.href ?? location.href);
  };
}

if (notifying && typeof Notification !== "undefined" && Notification.permission === "default") {
  notifying.hidden = false;
  notifying.addEventListener("click", async () => {
    const answer = await Notification.requestPermission();
    notifying.hidden = true;
    announce(answer === "granted" ? "You will be notified of new requests." : "The browser does not permit notifications.");
  });
}

// Keys select a request, or move the focus to a control of the selected request. Only Enter on that control answers.

const isTyping = (element) => element.closest?.("input, textarea, select, [contenteditable]") != null;

function select(card) {
  card?.focus();
  card?.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = cards();
  const at = all.findIndex((card) => card.contains(document.activeElement));
  select(at < 0 ? all[by > 0 ? 0 : all.length - 1] : all[Math.min(all.length - 1, Math.max(0, at + by))]);
}

/** Move the focus to the control of a key within the selected request. */
function aim(key) {
  const card = document.activeElement.closest?.("[data-request]");
  if (!card) {
    announce("Select a request with j first.");
    return;
  }
  const control = card.querySelector(`[data-answer="${key}"]`);
  if (!control || control.closest("fieldset")?.disabled) return;
  if (key === "m") control.parentElement.open = true;
  const target = key === "m" ? control.parentElement.querySelector("textarea") : control;
  target.focus();
  announce(key === "a" || key === "s" || key === "x" ? `${control.textContent}: press Enter to confirm.` : "");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat || isTyping(event.target)) return;
  const run = { j: () => step(1), k: () => step(-1), "?": showKeys }[event.key] ?? ("asmrx".includes(event.key) ? () => aim(event.key) : null);
  if (!run) return;
  event.preventDefault();
  run();
});

function showKeys() {
  const keys = box.querySelector("[data-keys]");
  if (!keys) return;
  keys.open = true;
  keys.querySelector("summary").focus();
}

open();
