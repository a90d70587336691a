// Keep the page live: when the runs change, read the page again and replace its live part. Everything works without it.
"use strict";

const connection = document.getElementById("connection");
let isBehind = false; // true if a replacement waits until a person has left a form
let shown = document.querySelector("[data-live]")?.innerHTML; // as it was served: other scripts change texts in it
let readReports = reportsIn(document); // by address of their forms, also while a run does not wait

/** Return true while a person uses a form of the live part, which a replacement would lose. */
function isInUse(part) {
  if (part.querySelector("[data-in-use]")) return true;
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea")];
  const hasInput = fields.some((field) => (field.type === "checkbox" ? field.checked : field.value !== field.defaultValue));
  // A field for a file is in no form, and has the focus while the dialog to choose the file is open.
  const hasFocus = part.contains(document.activeElement) && document.activeElement.closest("form, input");
  return hasInput || Boolean(hasFocus) || Boolean(String(document.getSelection()));
}

/** Return the folds by their ids; those without an id by their numbers. */
function folds(part) {
  const all = [...part.querySelectorAll("details")];
  const numbered = all.filter((each) => !each.id).length;
  let number = 0;
  return new Map(all.map((each) => [each.id || `${number++} of ${numbered}`, each]));
}

/** Return the name of an element that has the focus: its id, or what it is, where it leads, and its text. */
function nameOf(element) {
  const text = element.matches("a, summary") ? element.textContent : "";
  return element.id || [element.tagName, element.getAttribute("href"), element.getAttribute("aria-label"), text].join("|");
}

/** Replace the live part. Folds and the focus stay where they are. */
function replace(part, fresh) {
  const before = folds(part);
  const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  part.replaceWith(fresh);
  document.dispatchEvent(new Event("replaced"));
  folds(fresh).forEach((fold, name) => { if (before.has(name)) fold.open = before.get(name).open; });
  if (focused === null) return;
  const same = [...fresh.querySelectorAll("a, summary, [tabindex]")].find((element) => nameOf(element) === focused);
  same?.focus({ preventScroll: true });
}

async function refresh() {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const response = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  connection.hidden = response.status < 500;
  if (!response.ok || response.redirected) return;
  const read = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = read.querySelector("[data-live]");
  const served = fresh?.innerHTML;
  if (!fresh || served === shown || !part.isConnected) return;
  document.title = read.title;
  const next = reportsIn(fresh);
  const others = [...next.keys()].filter((address) => readReports.has(address)
    && readReports.get(address) !== next.get(address) && willShow(fresh, address, part));
  isBehind = isInUse(part) || others.length > 0; // a click must not approve what nobody has read
  const ended = isBehind ? [...reportsIn(part).keys()].filter((address) => !next.has(address)) : [];
  [...others, ...ended].forEach((address) => warnIfStale(part, address));
  if (isBehind) return;
  shown = served;
  replace(part, fresh);
  readReports = new Map([...readReports, ...next]);
}

/** Return the hashes of the reports that forms of this part decide on, by the address of the form. */
function reportsIn(part) {
  const fields = [...part.querySelectorAll("input[name=report]")];
  return new Map(fields.map((field) => [field.form.getAttribute("action"), field.value]));
}

/** Return the forms of an address. */
function formsOf(part, address) {
  return [...part.querySelectorAll("form")].filter((form) => form.getAttribute("action") === address);
}

/** Return true if people will see a form of this address after the replacement: it is in no fold, or in an open one. */
function willShow(fresh, address, part) {
  const isOpen = (fold) => !fold || (fold.id !== "" && folds(part).get(fold.id)?.open);
  return formsOf(fresh, address).some((form) => isOpen(form.closest("details")));
}

/** Tell a person that a report on this page is outdated. The server refuses it in any case. */
function warnIfStale(part, address) {
  const card = formsOf(part, address)[0]?.closest("article") ?? part;
  if (card.querySelector(":scope > [data-stale]")) return;
  const notice = document.createElement("p");
  notice.dataset.stale = "";
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = "The data changed since you opened this page. Reload it before you decide.";
  card.prepend(notice);
  shown = null; // the next answer of the server that decides on the same report replaces the notice
  card.querySelectorAll("form .button").forEach((button) => { button.disabled = true; });
}

/** Read the page again; say so if the server does not answer. */
function refreshOrWarn() {
  refresh().catch(() => { connection.hidden = false; });
}

let events = null;

/** Follow the runs while the page is visible. A browser allows six connections to a host, for all of its tabs. */
function follow() {
  if (document.hidden) {
    events?.close();
    events = null;
    return;
  }
  events ??= new EventSource(document.querySelector("[data-live]").dataset.live || "/events");
  events.addEventListener("runs", refreshOrWarn); // also the first: the runs may have changed since the page was made
  events.addEventListener("open", () => { connection.hidden = true; });
  events.addEventListener("error", () => { connection.hidden = false; });
}

if (document.querySelector("[data-live]")) {
  follow();
  document.addEventListener("visibilitychange", follow);
  document.addEventListener("focusout", () => { if (isBehind) setTimeout(refreshOrWarn); });
}

/**
 * Open the address that a link of another site led to. A browser does not send a strict cookie with such a link, but
 * with this second request it does. It is made once, because a person without a session comes back here.
 */
const signIn = document.querySelector("form[data-next]");
const next = signIn && new URL(signIn.dataset.next, location.origin);
if (next?.origin === location.origin && sessionStorage.getItem("opened") !== next.href) {
  sessionStorage.setItem("opened", next.href);
  location.replace(next);
}
