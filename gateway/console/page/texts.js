// Texts that were run in this tab, and whose they are: kept by the browser for as long as the tab is there.

const REMEMBERED = 50, LONGEST = 20_000;

export function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem("texts") || "[]");
  } catch {
    return [];
  }
}

export function remember(text) {
  try {
    sessionStorage.setItem("texts", JSON.stringify([text, ...remembered().filter((one) => one !== text)].filter((one) => one.length < LONGEST).slice(0, REMEMBERED)));
  } catch { /* too much for the browser: it is not remembered */ }
}

// Keeps them while they are this user's; those of another are forgotten.
export function textsFor(user) {
  try {
    if (sessionStorage.getItem("user") === user) return;
    sessionStorage.removeItem("texts");
    sessionStorage.setItem("user", user);
  } catch { /* a browser that keeps nothing */ }
}
