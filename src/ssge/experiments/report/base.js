"use strict";
// What map and charts share: the colors of the page in light and dark, and numbers packed as base64.
const theme = () => {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { ink: read("--ink"), muted: read("--muted"), grid: read("--grid"), faint: read("--faint"), page: read("--page"), accent: read("--accent") };
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const unpack = (text, Kind) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
};
const dataOf = (id) => JSON.parse(document.getElementById(id).textContent);
const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const SHADES = VIRIDIS.map((color, i) => [i / (VIRIDIS.length - 1), color]);
const FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif';
