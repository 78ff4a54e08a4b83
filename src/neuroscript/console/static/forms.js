// Forms for arguments: buttons that add and remove items, problems at their fields, and JSON beside the fields.
// Without this script the same buttons submit the form, and the server sends the page with the change.

// It imports nothing: the address of console.js has a version, and a second copy of it would start everything twice.
const announce = (text) => (document.getElementById("announcer").textContent = text);
const csrf = () => document.body.dataset.csrf ?? "";
const live = (form) => form.dispatchEvent(new Event("live"));

/** Remember in the form whether the fields or the JSON was edited last. */
function markEdited(form, name) {
  for (const radio of form.querySelectorAll('input[name="$edited"]')) radio.checked = radio.value === name;
}

/** Replace the fields. Inputs whose content never comes from the server, passwords and files, stay as they are. */
function replaceFields(form, html) {
  const fields = form.querySelector("#fields");
  const active = fields.contains(document.activeElement) ? document.activeElement.id : "";
  const kept = new Map();
  for (const input of fields.querySelectorAll('input[type="password"], input[type="file"]')) kept.set(input.name, input);
  fields.innerHTML = html;
  for (const input of fields.querySelectorAll('input[type="password"], input[type="file"]')) {
    const before = kept.get(input.name);
    if (before && before.type === input.type) input.replaceWith(before);
  }
  if (active) document.getElementById(active)?.focus({ preventScroll: true });
}

async function changeFields(form, action) {
  const body = new FormData(form);
  body.set("$do", action);
  body.set("$edited", "form");
  const headers = { "x-requested-with": "neuroscript", "x-csrf-token": csrf() };
  const response = await fetch(form.dataset.fieldsUrl, { method: "POST", body, headers });
  if (!response.ok || response.redirected) {
    announce("The form could not be changed. Reload the page.");
    return;
  }
  markEdited(form, "form");
  replaceFields(form, await response.text());
  moveFocus(form, action);
  live(form);
}

/** Move the focus to the item that was added, or to the button that adds one after an item was removed. */
function moveFocus(form, action) {
  const [kind, name] = [action.slice(0, action.indexOf(":")), action.slice(action.indexOf(":") + 1)];
  if (kind === "add") {
    const removals = [...form.querySelectorAll('button[name="$do"]')].filter((button) => {
      const rest = button.value.startsWith(`remove:${name}.`) ? button.value.slice(`remove:${name}.`.length) : "";
      return /^\d+$/.test(rest);
    });
    const item = removals.at(-1)?.closest(".field");
    (item?.querySelector("input:not([type=hidden]), textarea, select") ?? item)?.focus();
    announce("Added.");
  } else if (kind === "remove") {
    const list = name.slice(0, name.lastIndexOf("."));
    [...form.querySelectorAll('button[name="$do"]')].find((button) => button.value === `add:${list}`)?.focus();
    announce("Removed.");
  }
}

/** Show the problems and repairs that the server has found at their fields, and the newest JSON or fields. */
function showParts(form, target) {
  const parts = target.querySelector(".live-parts");
  if (!parts) return;
  const json = parts.querySelector("[data-json]");
  if (json.dataset.json === "json") {
    const template = parts.querySelector("template[data-fields]");
    if (template) replaceFields(form, template.innerHTML);
  } else {
    form.querySelector("#json").value = json.textContent;
  }
  for (const place of form.querySelectorAll(".live")) showAt(place, parts);
}

function showAt(place, parts) {
  const own = (kind) => [...parts.querySelectorAll(`[data-${kind}]`)].filter((each) => each.dataset[kind] === place.dataset.field);
  const field = place.closest(".field");
  const isInner = !field.querySelector(`:scope .field .live[data-field="${CSS.escape(place.dataset.field)}"]`);
  const problems = isInner ? own("problem").map((each) => each.textContent) : [];
  const notes = isInner ? own("note").map((each) => each.textContent) : [];
  const control = field.querySelector(":scope > .with-state > :is(input:not([type=file]), textarea, select:not(.state))");
  place.replaceChildren(...line("error", problems, control), ...line("note", notes, control));
  if (!control) return;
  if (problems.length) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
  const others = (control.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id.endsWith("-hint"));
  const shown = [...place.children].map((each) => each.id);
  const ids = [...others, ...shown].join(" ");
  if (ids) control.setAttribute("aria-describedby", ids);
  else control.removeAttribute("aria-describedby");
}

function line(kind, texts, control) {
  if (!texts.length) return [];
  const found = document.createElement("p");
  found.className = kind;
  found.id = `${control?.id ?? "form"}-${kind}`;
  found.textContent = texts.join("; ");
  return [found];
}

/** Return whether the browser has restored what the user had entered before, such as after the back button. */
const isRestored = (form) =>
  [...form.elements].some((each) => typeof each.defaultValue === "string" && each.type !== "hidden" && each.type !== "radio" && each.value !== each.defaultValue);

for (const form of document.querySelectorAll("form[data-fields-url]")) {
  addEventListener("pageshow", () => isRestored(form) && live(form));
  form.addEventListener("input", (event) => markEdited(form, event.target.id === "json" ? "json" : "form"), true);
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-reload]")) changeFields(form, "show");
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest('button[name="$do"]');
    if (!button || !/^(add|remove):/.test(button.value)) return;
    event.preventDefault();
    changeFields(form, button.value);
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hidden) event.preventDefault(); // Enter in a field; the page shows the effect already
  });
  document.querySelector(form.dataset.target)?.addEventListener("shown", (event) => showParts(form, event.currentTarget));
}
