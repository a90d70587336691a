// Keep the page live: when the runs change, read the page again and replace its live part. Everything works without it.
"use strict";

const connection = document.getElementById("connection");
let isBehind = false; // true if a replacement waits until a person has left a form
let shown = document.querySelector("[data-live]")?.innerHTML; // as it was served: other scripts change texts in it
let readReport = reportOf(document); // the first report that this page showed, also while the run does not wait

/** Return true while a person uses a form of the live part, which a replacement would lose. */
function isInUse(part) {
  if (part.querySelector("[data-in-use]")) return true;
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea")];
  const hasInput = fields.some((field) => (field.type === "checkbox" ? field.checked : field.value !== field.defaultValue));
  // A field for a file is in no form, and has the focus while the dialog to choose the file is open.
  const hasFocus = part.contains(document.activeElement) && document.activeElement.closest("form, input");
  return hasInput || Boolean(hasFocus) || Boolean(String(document.getSelection()));
}

/** Return the states of the folds, so that they stay as they are. */
function folds(part) {
  return [...part.querySelectorAll("details")];
}

/** Return the name of an element that has the focus: its id, or what it is, where it leads, and its text. */
function nameOf(element) {
  const text = element.matches("a, summary") ? element.textContent : "";
  return element.id || [element.tagName, element.getAttribute("href"), element.getAttribute("aria-label"), text].join("|");
}

/** Replace the live part. Folds and the focus stay where they are. */
function replace(part, fresh) {
  const open = folds(part).map((fold) => fold.open);
  const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  part.replaceWith(fresh);
  document.dispatchEvent(new Event("replaced"));
  if (open.length === folds(fresh).length) folds(fresh).forEach((fold, index) => { fold.open = open[index]; });
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
  const next = reportOf(fresh);
  const isOther = Boolean(readReport && next) && next !== readReport; // a click must not approve what nobody has read
  isBehind = isInUse(part) || isOther;
  if (isOther || (isBehind && reportOf(part) && !next)) warnIfStale(part);
  if (isBehind) return;
  shown = served;
  replace(part, fresh);
  readReport ??= next;
}

/** Return the hash of the report that a form of this part decides on. */
function reportOf(part) {
  return part.querySelector("input[name=report]")?.value;
}

/** Tell a person that the report on this page is outdated. The server refuses it in any case. */
function warnIfStale(part) {
  if (document.getElementById("stale")) return;
  const notice = document.createElement("p");
  notice.id = "stale";
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = "The data changed since you opened this page. Reload it before you decide.";
  part.prepend(notice);
  shown = null; // the next answer of the server that decides on the same report replaces the notice
  part.querySelectorAll("form .button").forEach((button) => { button.disabled = true; });
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
