// Copy the text beside a button to the clipboard.
"use strict";

const SHOWN_FOR = 2000; // milliseconds for which a button tells that it has copied

/** Select a text, so that a person can copy it where the browser does not permit it to the page. */
function select(text) {
  document.getSelection().selectAllChildren(text);
}

async function copy(button) {
  const text = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    select(text);
    button.textContent = "Selected: press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, SHOWN_FOR);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
