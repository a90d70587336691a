// Keep the page live: when the runs change, read the page again and replace its live part. Everything works without it.
"use strict";

const connection = document.getElementById("connection");

/** Return true while a person uses a form of the live part, which a replacement would lose. */
function isInUse(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea")];
  const hasInput = fields.some((field) => (field.type === "checkbox" ? field.checked : field.value !== field.defaultValue));
  return hasInput || part.contains(document.activeElement) || Boolean(String(document.getSelection()));
}

/** Return the states of the folds, so that they stay as they are. */
function folds(part) {
  return [...part.querySelectorAll("details")];
}

async function refresh() {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const response = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) return;
  const read = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = read.querySelector("[data-live]");
  if (!fresh || fresh.innerHTML === part.innerHTML) return;
  document.title = read.title;
  if (isInUse(part)) {
    warnIfStale(part, fresh);
    return;
  }
  const open = folds(part).map((fold) => fold.open);
  part.replaceWith(fresh);
  if (open.length === folds(fresh).length) folds(fresh).forEach((fold, index) => { fold.open = open[index]; });
}

/** Tell a person who fills in a form that the report under the form has changed. The server refuses it in any case. */
function warnIfStale(part, fresh) {
  const name = "input[name=report]";
  if (part.querySelector(name)?.value === fresh.querySelector(name)?.value || document.getElementById("stale")) return;
  const notice = document.createElement("p");
  notice.id = "stale";
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = "The data changed since you opened this page. Reload it before you decide.";
  part.prepend(notice);
  part.querySelectorAll("form .button").forEach((button) => { button.disabled = true; });
}

if (document.querySelector("[data-live]")) {
  const events = new EventSource("/events");
  let isFirst = true;
  events.addEventListener("runs", () => {
    connection.hidden = true;
    if (!isFirst) refresh();
    isFirst = false;
  });
  events.addEventListener("open", () => { connection.hidden = true; });
  events.addEventListener("error", () => {
    connection.hidden = false;
    isFirst = false;
  });
}
