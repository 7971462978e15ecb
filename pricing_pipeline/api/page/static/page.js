// The operations page: fetches its sections as HTML, replaces those that changed, and sends the requests of its buttons.
// The token stays in this tab's sessionStorage. Every request carries it as a header; there is no cookie.
"use strict";

const LOOK_EVERY = 3000; // milliseconds between two requests, while the tab is visible
const SLOW_AFTER = 2000; // milliseconds after which a request without an answer is told
const OUTCOME_SHOWN = 5000; // milliseconds for which a row shows the outcome of a click
const byId = (id) => document.getElementById(id);
const sections = byId("sections");
let token = null;
let tag = null; // of the sections that are shown
let shown = new Map(); // section id -> its HTML
let busyUntil = new Map(); // section id -> when it may change again
let clockOffset = 0; // server's clock minus this one, in milliseconds
let lastSeen = null;
let timer = null;
let lastRequest = 0; // the answer to an earlier request is not shown after a later one

function readToken() {
  const fromLink = new URLSearchParams(location.hash.slice(1)).get("token");
  if (fromLink) {
    sessionStorage.setItem("token", fromLink);
    history.replaceState(null, "", location.pathname);
  }
  token = sessionStorage.getItem("token");
}

function send(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${token}` };
  return fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
}

async function problemOf(answer) {
  const content = await answer.json().catch(() => null);
  return content?.detail ?? `The server answered ${answer.status}.`;
}

// --- Reading the sections

async function refresh(anew = false) {
  clearTimeout(timer);
  const request = ++lastRequest;
  const slow = setTimeout(() => {
    if (request === lastRequest) showConnection("There is no answer yet. The database may not answer.");
  }, SLOW_AFTER);
  try {
    const headers = { ...(tag && { "If-None-Match": tag }), ...(anew && { "Cache-Control": "no-cache" }) };
    const answer = await send("/v1/page", { headers });
    if (request !== lastRequest) return;
    if (answer.status === 401 || answer.status === 403) return askForToken(await problemOf(answer));
    if (answer.status === 200) {
      tag = showSections(await answer.text()) ? answer.headers.get("ETag") : null;
    } else if (answer.status !== 304) {
      throw new Error(await problemOf(answer));
    }
    lastSeen = Date.now();
    showConnection("");
  } catch (error) {
    if (request !== lastRequest) return;
    showConnection(error instanceof TypeError ? "The server of this page does not answer. Does pricing-pipeline up still run?" : error.message);
  } finally {
    clearTimeout(slow);
  }
  showTimes();
  if (!document.hidden) timer = setTimeout(refresh, LOOK_EVERY);
}

function showConnection(why) {
  document.body.classList.toggle("lost", why !== "");
  const since = why && lastSeen ? ` This page shows the state of ${span(Date.now() - lastSeen)} ago.` : "";
  const words = why ? `${why}${since}` : "live";
  if (byId("connection").textContent !== words) byId("connection").textContent = words;
}

// Replaces the sections that changed. False if one of them waits, because it shows the outcome of a click.
function showSections(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  let isAll = true;
  const order = [...fresh.querySelectorAll("body > section")];
  const first = sections.childElementCount === 0;
  for (const section of order) {
    const text = section.outerHTML;
    if (shown.get(section.id) === text) continue;
    if ((busyUntil.get(section.id) ?? 0) > Date.now()) {
      isAll = false;
      continue;
    }
    const old = byId(section.id);
    const focused = old?.contains(document.activeElement) ? document.activeElement.id : null;
    const added = document.importNode(section, true);
    if (old) old.replaceWith(added);
    else sections.append(added);
    if (focused !== null) (byId(focused) ?? heading(added)).focus({ preventScroll: true });
    shown.set(section.id, text);
  }
  const verdict = byId("verdict");
  clockOffset = Date.parse(verdict.dataset.now) - Date.now();
  document.title = `${verdict.classList.contains("well") ? "" : verdict.classList.contains("ill") ? "✖ " : "● "}Pricing pipeline`;
  if (first && location.hash.length > 1) byId(location.hash.slice(1))?.scrollIntoView();
  return isAll;
}

function heading(section) {
  const title = section.querySelector("h1, h2");
  title.tabIndex = -1;
  return title;
}

// --- Times

function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function showTimes() {
  const now = Date.now() + clockOffset;
  for (const time of sections.querySelectorAll("time")) {
    const gone = now - Date.parse(time.dateTime);
    const words = Math.abs(gone) < 1500 ? "now" : gone > 0 ? `${span(gone)} ago` : `in ${span(-gone)}`;
    if (time.textContent !== words) time.textContent = words;
  }
}

// --- Buttons

function confirmed(button) {
  if (!button.dataset.confirm) return Promise.resolve({});
  const dialog = byId("confirmation");
  byId("question").textContent = button.dataset.confirm;
  byId("yes").textContent = button.textContent;
  byId("hours").hidden = !("hours" in button.dataset);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        const hours = Number(dialog.querySelector("input[name=hours]:checked").value);
        resolve(dialog.returnValue === "yes" ? ("hours" in button.dataset ? { hours } : {}) : null);
      },
      { once: true },
    );
  });
}

async function act(button) {
  const more = await confirmed(button);
  if (more === null) return;
  const row = button.closest(".row");
  const section = row.closest("section");
  const others = [...row.querySelectorAll("button")];
  for (const other of others) other.disabled = true;
  busyUntil.set(section.id, Infinity);
  let words;
  let isDone = false;
  try {
    const answer = await send(button.dataset.post, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...JSON.parse(button.dataset.content), ...more }),
    });
    isDone = answer.ok;
    words = isDone ? outcomeOf(await answer.json(), button) : await problemOf(answer);
  } catch {
    words = "The server does not answer. It is not known whether this was done.";
  }
  showOutcome(row, words, isDone);
  busyUntil.set(section.id, Date.now() + OUTCOME_SHOWN);
  if (!isDone) for (const other of others) other.disabled = false;
  setTimeout(() => refresh(true), OUTCOME_SHOWN);
  refresh(true);
}

// The outcome of a click in sentences: those of the answer, each with how many it is about, or else that of the button.
function outcomeOf(content, button) {
  const outcomes = content.tasks ?? content.operations ?? [content];
  const counts = new Map();
  for (const { sentence } of outcomes) counts.set(sentence, (counts.get(sentence) ?? 0) + 1);
  if (counts.has(undefined)) return button.dataset.done;
  const told = [...counts].map(([sentence, count]) => (outcomes.length > 1 ? `${count} of them: ${sentence}` : sentence));
  return told.map((words) => words.charAt(0).toUpperCase() + words.slice(1)).join(" ");
}

function showOutcome(row, words, isDone) {
  const note = row.querySelector(".outcome") ?? row.appendChild(document.createElement("p"));
  note.className = isDone ? "outcome" : "outcome ill";
  note.textContent = words;
  if (isDone) {
    row.querySelector(".acts").remove();
    note.tabIndex = -1;
    note.focus({ preventScroll: true });
  }
  byId("announcement").textContent = words;
}

// --- The token

function askForToken(why) {
  clearTimeout(timer);
  sessionStorage.removeItem("token");
  token = tag = null;
  shown = new Map();
  sections.replaceChildren();
  byId("connection").textContent = "";
  byId("refusal").textContent = why;
  byId("enter").hidden = false;
  byId("token").focus();
}

function begin() {
  readToken();
  if (token === null) return askForToken("");
  byId("enter").hidden = true;
  refresh();
}

byId("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value.trim());
  byId("token").value = "";
  begin();
});
sections.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post]");
  if (button) act(button);
});
document.addEventListener("visibilitychange", () => {
  if (token === null) return;
  if (document.hidden) clearTimeout(timer);
  else refresh();
});
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) begin();
});
setInterval(showTimes, 1000);
begin();
