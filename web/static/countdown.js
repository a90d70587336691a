// Show the time that is left until a deadline instead of the deadline.
"use strict";

const SECOND = 1000;
const [MINUTE, HOUR, DAY] = [60, 3600, 86400]; // in seconds

/** Return a duration in its two largest units: `3 h 18 min`, `9 s`. The server does the same for other durations. */
function inWords(seconds) {
  if (seconds >= DAY) return `${Math.floor(seconds / DAY)} d ${Math.floor((seconds % DAY) / HOUR)} h`;
  if (seconds >= HOUR) return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`;
  return seconds >= MINUTE ? `${Math.floor(seconds / MINUTE)} min ${seconds % MINUTE} s` : `${seconds} s`;
}

function countDown() {
  for (const each of document.querySelectorAll("[data-deadline]")) {
    const left = Math.floor((Date.parse(each.dateTime) - Date.now()) / SECOND);
    if (Number.isNaN(left)) continue; // the text of the server stays
    const text = left > 0 ? `${inWords(left)} left` : "The deadline has passed";
    if (each.textContent !== text) each.textContent = text; // a text that changes for nothing loses its selection
  }
}

countDown();
setInterval(countDown, SECOND);
document.addEventListener("replaced", countDown);
