// Sign decisions by a key that never leaves this browser. The server gets the signed text and the signature.
"use strict";

const STORE = "keys";
let ownKey = null; // the person's key, as long as this page is open
let isKept = false; // true if the browser keeps the key for other pages
let isAble = null; // true if this browser has Ed25519
let reading = null; // the search for a kept key, which happens once for each page

/** Return the part of the page that signs, which may have been replaced meanwhile; null if the run waits no more. */
function partThatSigns() {
  return document.querySelector("[data-signing]");
}

/** Return true if this browser can sign. Only pages of 127.0.0.1 and of HTTPS have WebCrypto. */
async function canSign() {
  try {
    await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign"]);
    return true;
  } catch {
    return false;
  }
}

/** Return the private key in a PEM file of `approver-key`, in a form that scripts can use and not read. */
async function importKey(file) {
  const wrong = "This file has no private key as approver-key makes it: PEM, PKCS8, Ed25519, without a password.";
  const body = (await file.text()).match(/-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/);
  if (!body) throw new Error(wrong);
  try {
    const bytes = Uint8Array.from(atob(body[1].replace(/\s/g, "")), (each) => each.charCodeAt(0));
    return await crypto.subtle.importKey("pkcs8", bytes, { name: "Ed25519" }, false, ["sign"]);
  } catch {
    throw new Error(wrong);
  }
}

/** Do one request to the database of kept keys. Each person has one key in it. */
function inStore(mode, request) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("sluice", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const change = database.transaction(STORE, mode);
      const done = request(change.objectStore(STORE));
      change.oncomplete = () => { database.close(); resolve(done.result); };
      change.onabort = () => { database.close(); reject(change.error); };
    };
  });
}

/** Show what the person can do: choose a key, or sign with the one that is there. */
function show() {
  const section = partThatSigns();
  if (!section) return;
  const part = (name) => section.querySelector(`[data-${name}]`);
  const { person } = section.dataset;
  part("able").hidden = !isAble;
  part("unable").hidden = isAble;
  part("forget").hidden = !ownKey;
  for (const each of section.querySelectorAll("[data-choice]")) {
    each.hidden = Boolean(ownKey) && (isKept || !each.querySelector("[data-keep]")); // a key can be kept afterwards
  }
  part("state").textContent = !ownKey
    ? "A decision needs your signature. Choose your key: it does not leave this browser."
    : isKept ? `This browser keeps the key of ${person}.` : `The key of ${person} is ready until you leave this page.`;
  const isStale = Boolean(document.querySelector("[data-stale]"));
  for (const form of document.querySelectorAll("form[data-decision]")) {
    form.querySelector(".button").disabled = !(isAble && ownKey) || isStale || Boolean(form.querySelector("[data-in-use]"));
  }
}

/** Show why something did not work; an empty text removes the notice. */
function tell(problem) {
  const notice = partThatSigns()?.querySelector("[data-problem]");
  if (!notice) return;
  notice.textContent = problem;
  notice.hidden = !problem;
}

async function keep(section) {
  try {
    await inStore("readwrite", (keys) => keys.put(ownKey, section.dataset.person));
    isKept = true;
    section.querySelector("[data-keep]").checked = false; // the page does not renew itself while a box is checked
  } catch {
    tell("This browser keeps no keys. The key can be used until you leave this page.");
  }
}

async function choose(section, file) {
  try {
    ownKey = await importKey(file);
    tell("");
    if (section.querySelector("[data-keep]").checked) await keep(section);
  } catch (error) {
    tell(error.message);
  }
}

async function forget(section) {
  ownKey = null;
  isKept = false;
  await inStore("readwrite", (keys) => keys.delete(section.dataset.person)).catch(() => {});
}

/** Return the text that the server will verify, after a comparison with what the person sees. */
async function readStatement(form, section) {
  const stated = new FormData(form);
  const address = form.action.replace(/\/decision$/, "/statement");
  const response = await fetch(address, { method: "POST", body: new URLSearchParams(stated) });
  const answer = await response.json().catch(() => ({}));
  if (!answer.statement) throw new Error(answer.error || "The page did not answer. Nothing was decided.");
  const { run, hash, person } = section.dataset;
  const fields = JSON.parse(answer.statement);
  const lines = (text) => text.replace(/\r\n?/g, "\n");
  const isShown = fields.run_id === run && fields.audited_hash === hash && fields.by === person
    && fields.approve === (stated.get("decision") === "approve") && lines(fields.reason) === lines(stated.get("reason"));
  if (!isShown) throw new Error("The text to sign is not what this page shows. Nothing was signed: reload the page.");
  return { text: answer.statement, fields };
}

/** Show what will be signed, with a button that signs it. */
function confirmStatement(form, { text, fields }) {
  const box = document.createElement("div");
  box.className = "signing";
  box.dataset.inUse = "";
  const list = box.appendChild(document.createElement("dl"));
  const shown = {
    Decision: fields.approve ? "approve" : "reject",
    Person: fields.by,
    Run: fields.run_id,
    Hash: fields.audited_hash,
    Report: fields.audit_digest,
    Time: fields.at,
    Reason: fields.reason || "none",
    ...(fields.waivers ? { Waives: fields.waivers.map((each) => `${each.check} of ${each.table} until ${each.until}`).join(", ") } : {}),
  };
  for (const [name, value] of Object.entries(shown)) {
    list.appendChild(document.createElement("dt")).textContent = name;
    list.appendChild(document.createElement("dd")).textContent = value;
  }
  const button = (label, look, action) => {
    const made = box.appendChild(document.createElement("button"));
    made.type = "button";
    made.className = `button ${look}`;
    made.textContent = label;
    made.addEventListener("click", action);
    return made;
  };
  const sign = button(`Sign and ${shown.Decision}`, "primary", () => {
    sign.disabled = true; // a second click sends nothing
    send(form, text).catch(() => { box.remove(); tell("The key cannot sign. Choose it again."); show(); });
  });
  button("Go back", "", () => { box.remove(); show(); });
  form.append(box);
  show();
  sign.focus();
}

async function send(form, text) {
  const signature = await crypto.subtle.sign("Ed25519", ownKey, new TextEncoder().encode(text));
  form.elements.statement.value = text;
  form.elements.signature.value = btoa(String.fromCharCode(...new Uint8Array(signature)));
  form.submit(); // sends no event, so that the form goes to the server
}

async function onSubmit(event) {
  const section = partThatSigns();
  if (!section || !event.target.matches("form[data-decision]")) return;
  event.preventDefault();
  if (event.target.querySelector("[data-in-use]")) return; // the person has pressed Enter before signing
  tell("");
  try {
    confirmStatement(event.target, await readStatement(event.target, section));
  } catch (error) {
    tell(error instanceof TypeError ? "The page did not answer. Nothing was decided." : error.message);
  }
}

async function onChange(event) {
  const section = event.target.closest("[data-signing]");
  if (!section) return;
  if (event.target.matches("[data-key]") && event.target.files.length) {
    await choose(section, event.target.files[0]);
    event.target.value = "";
  } else if (event.target.matches("[data-keep]") && event.target.checked && ownKey) {
    await keep(section);
  }
  show();
}

async function onClick(event) {
  const section = event.target.closest("[data-signing]");
  if (!section || !event.target.matches("[data-forget]")) return;
  await forget(section);
  show();
}

/** Find out whether this browser can sign, and read the key that it keeps for a person. */
async function readKey(person) {
  const canBeUsed = await canSign();
  const kept = canBeUsed && await inStore("readonly", (keys) => keys.get(person)).catch(() => null);
  if (kept && !ownKey) [ownKey, isKept] = [kept, true]; // the person may have chosen a key meanwhile
  isAble = canBeUsed;
  partThatSigns()?.querySelector("[data-commands]").toggleAttribute("open", !isAble);
}

/** Prepare the part of the page that signs, also after the page has replaced it. */
async function prepare() {
  const section = partThatSigns();
  if (!section) return;
  reading ??= readKey(section.dataset.person);
  await reading;
  show();
}

document.addEventListener("submit", onSubmit);
document.addEventListener("change", onChange);
document.addEventListener("click", onClick);
document.addEventListener("replaced", prepare);
prepare();
