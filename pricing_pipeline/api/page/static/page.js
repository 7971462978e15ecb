// The operations page: fetches its sections as HTML, puts in those that changed, and sends what buttons ask for.
// The token stays in this tab's sessionStorage. Every request carries it as a header; there is no cookie.
"use strict";

const EVERY = 3000; // milliseconds between two looks, while the tab is visible
const SHOWN = 5000; // so long a row says what a click has done before it may go
const byId = (id) => document.getElementById(id);
const sections = byId("sections");
let token = null;
let tag = null; // of the sections that are shown
let shown = new Map(); // section id -> its HTML
let busyUntil = new Map(); // section id -> when it may change again
let ahead = 0; // server's clock minus this one, in milliseconds
let lastSeen = null;
let timer = null;
let turn = 0; // an answer that was asked for before another is not shown after it

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  token = sessionStorage.getItem("token");
}

function ask(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${token}` };
  return fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
}

async function problem(answer) {
  const content = await answer.json().catch(() => null);
  return content?.detail ?? `The server answered ${answer.status}.`;
}

// --- Looking

async function look(anew = false) {
  clearTimeout(timer);
  const mine = ++turn;
  try {
    const headers = { ...(tag && { "If-None-Match": tag }), ...(anew && { "Cache-Control": "no-cache" }) };
    const answer = await ask("/v1/page", { headers });
    if (mine !== turn) return;
    if (answer.status === 401 || answer.status === 403) return enter(await problem(answer));
    if (answer.status === 200) {
      tag = put(await answer.text()) ? answer.headers.get("ETag") : null;
    } else if (answer.status !== 304) {
      throw new Error(await problem(answer));
    }
    lastSeen = Date.now();
    lost("");
  } catch (error) {
    if (mine !== turn) return;
    lost(error instanceof TypeError ? "The server of this page does not answer. Does pricing-pipeline up still run?" : error.message);
  }
  tell();
  if (!document.hidden) timer = setTimeout(look, EVERY);
}

function lost(why) {
  document.body.classList.toggle("lost", why !== "");
  const since = why && lastSeen ? ` What you see is from ${span(Date.now() - lastSeen)} ago.` : "";
  const words = why ? `${why}${since}` : "live";
  if (byId("seen").textContent !== words) byId("seen").textContent = words;
}

// Puts in what has changed. False if a section was left as it is for a while, because it says what a click has done.
function put(html) {
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
    const kept = document.importNode(section, true);
    if (old) old.replaceWith(kept);
    else sections.append(kept);
    if (focused !== null) (byId(focused) ?? heading(kept)).focus({ preventScroll: true });
    shown.set(section.id, text);
  }
  const verdict = byId("verdict");
  ahead = Date.parse(verdict.dataset.now) - Date.now();
  document.title = `${verdict.classList.contains("well") ? "" : verdict.classList.contains("ill") ? "✖ " : "● "}Pricing pipeline`;
  if (first && location.hash.length > 1) byId(location.hash.slice(1))?.scrollIntoView();
  return isAll;
}

function heading(section) {
  const found = section.querySelector("h1, h2");
  found.tabIndex = -1;
  return found;
}

// --- Times

function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function tell() {
  const now = Date.now() + ahead;
  for (const time of sections.querySelectorAll("time")) {
    const gone = now - Date.parse(time.dateTime);
    const words = Math.abs(gone) < 1500 ? "now" : gone > 0 ? `${span(gone)} ago` : `in ${span(-gone)}`;
    if (time.textContent !== words) time.textContent = words;
  }
}

// --- Acting

function sure(button) {
  if (!button.dataset.confirm) return Promise.resolve({});
  const dialog = byId("sure");
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
  const more = await sure(button);
  if (more === null) return;
  const row = button.closest(".row");
  const section = row.closest("section");
  const others = [...row.querySelectorAll("button")];
  for (const other of others) other.disabled = true;
  busyUntil.set(section.id, Infinity);
  let words;
  let isDone = false;
  try {
    const answer = await ask(button.dataset.post, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...JSON.parse(button.dataset.content), ...more }),
    });
    isDone = answer.ok;
    words = isDone ? outcome(await answer.json(), button) : await problem(answer);
  } catch {
    words = "The server does not answer: whether that was done is not known.";
  }
  say(row, words, isDone);
  busyUntil.set(section.id, Date.now() + SHOWN);
  if (!isDone) for (const other of others) other.disabled = false;
  setTimeout(() => look(true), SHOWN);
  look(true);
}

// What the server says has become of the one row, or what the button promised.
function outcome(content, button) {
  const [told] = content.tasks ?? content.operations ?? [];
  if (!told?.sentence) return button.dataset.done;
  return told.sentence.charAt(0).toUpperCase() + told.sentence.slice(1);
}

function say(row, words, isDone) {
  const note = row.querySelector(".outcome") ?? row.appendChild(document.createElement("p"));
  note.className = isDone ? "outcome" : "outcome ill";
  note.textContent = words;
  if (isDone) {
    row.querySelector(".acts").remove();
    note.tabIndex = -1;
    note.focus({ preventScroll: true });
  }
  byId("said").textContent = words;
}

// --- Entering

function enter(why) {
  clearTimeout(timer);
  sessionStorage.removeItem("token");
  token = tag = null;
  shown = new Map();
  sections.replaceChildren();
  byId("seen").textContent = "";
  byId("refused").textContent = why;
  byId("enter").hidden = false;
  byId("token").focus();
}

function begin() {
  takeToken();
  if (token === null) return enter("");
  byId("enter").hidden = true;
  look();
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
  else look();
});
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) begin();
});
setInterval(tell, 1000);
begin();
