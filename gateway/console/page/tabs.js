// The way from other views to the editor: a text that it begins with.

let waiting = null;

export function toEditor(text) {
  waiting = text;
  location.hash = "#/editor";
}

export function taken() {
  const text = waiting;
  waiting = null;
  return text;
}
