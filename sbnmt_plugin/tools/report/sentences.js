// The list of sentences: filtered and sorted as data, shown a page at a time, and read
// from packed texts as they are needed, so that a hundred thousand cost little more than ten.
(() => {
  "use strict";
  const PAGE = 10;
  const KEPT = 16; // packs that stay unpacked
  const { systems, raced, size, rows } = JSON.parse(document.getElementById("sentences-data").textContent);
  const packs = document.querySelectorAll(".sentences-texts");
  const [SOURCE, GOLDS, OUTPUTS] = [0, 1, 2]; // of a sentence's texts
  const [SCORES, LENGTH, WON] = [0, 1, 2]; // of a row
  const WORD = /[\u3400-\u9fff\uf900-\ufaff]|[\p{L}\p{M}\p{N}'’@_-]+|\S/gu;
  const $ = (id) => document.getElementById(id);
  const state = { page: 0, found: rows.map((_, i) => i), asked: 0 };
  const unpacked = new Map();
  if (!window.DecompressionStream) {
    $("found").textContent = "The list needs a browser of 2023 or later; numbers/sentences.csv has all of it.";
    return;
  }

  const unpack = async (k) => {
    const bytes = Uint8Array.from(atob(packs[k].textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  // The texts of a pack of sentences; those asked for last are at hand.
  const textsOf = (k) => {
    const found = unpacked.get(k) ?? unpack(k);
    unpacked.delete(k);
    unpacked.set(k, found);
    if (unpacked.size > KEPT) unpacked.delete(unpacked.keys().next().value);
    return found;
  };

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text; // never parsed as HTML
    if (className) made.className = className;
    return made;
  };

  // Words with their places in the text.
  const wordsOf = (text) => [...text.matchAll(WORD)].map((m) => [m[0].toLowerCase(), m.index, m.index + m[0].length]);

  // Which words of a are in the longest common subsequence with b.
  const common = (a, b) => {
    const width = b.length + 1;
    const best = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--)
        best[i * width + j] = a[i][0] === b[j][0]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    const kept = new Array(a.length).fill(false);
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i][0] === b[j][0]) { kept[i] = true; i++; j++; }
      else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
      else j++;
    }
    return [kept, best[0]];
  };

  // An output with the words marked that the closest reference does not have.
  const marked = (text, golds) => {
    const dd = element("dd");
    dd.dir = "auto";
    if (!text.trim()) {
      dd.append(element("span", "(empty)", "empty"));
      return dd;
    }
    const words = wordsOf(text);
    let kept = null, most = -1;
    for (const gold of golds) {
      const other = wordsOf(gold);
      const [mask, count] = common(words, other);
      const ratio = (2 * count) / Math.max(1, words.length + other.length);
      if (ratio > most) { most = ratio; kept = mask; }
    }
    let at = 0;
    for (let i = 0; i < words.length; i++) {
      if (kept[i]) continue;
      let last = i;
      while (last + 1 < words.length && !kept[last + 1]) last++;
      dd.append(text.slice(at, words[i][1]), element("mark", text.slice(words[i][1], words[last][2]), "differs"));
      at = words[last][2];
      i = last;
    }
    dd.append(text.slice(at));
    return dd;
  };

  const signed = (x) => (x > 0 ? "+" : x < 0 ? "−" : "±") + Math.abs(x).toFixed(1);
  const gain = (i) => rows[i][SCORES][+$("first").value] - rows[i][SCORES][+$("second").value];

  const line = (list, name, score, dd) => list.append(element("dt", name), element("dd", score, "score"), dd);

  const card = (i, texts) => {
    const row = rows[i];
    const article = element("article", undefined, "sentence");
    const head = element("h3");
    head.append(element("b", `line ${i + 1}`), ` · ${row[LENGTH]} source tokens`);
    raced.forEach((name, k) => {
      const who = row[WON][k] === "l" ? "l2r" : "r2l";
      head.append(` · ${name}: `, element("span", `${who.toUpperCase()} won`, `won-${who}`));
    });
    if (systems.length > 1) {
      const value = gain(i);
      head.append(" · gain ", element("span", signed(value), value > 0 ? "up" : value < 0 ? "down" : ""));
    }
    const list = element("dl");
    const plain = (text, className) => {
      const dd = text.trim() ? element("dd", text, className) : element("dd", "(empty)", "empty");
      dd.dir = "auto";
      return dd;
    };
    line(list, "source", "", plain(texts[SOURCE], "source"));
    texts[GOLDS].forEach((text, k) =>
      line(list, texts[GOLDS].length > 1 ? `reference ${k + 1}` : "reference", "", plain(text, "gold")));
    texts[OUTPUTS].forEach((text, k) =>
      line(list, systems[k], row[SCORES][k].toFixed(1), marked(text, texts[GOLDS])));
    article.append(head, list);
    return article;
  };

  // What is asked for last is shown; what was asked before it gives up.
  const show = async (asked) => {
    $("list").setAttribute("aria-busy", "true");
    const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const start = state.page * PAGE;
    const wanted = state.found.slice(start, start + PAGE);
    const texts = await Promise.all(wanted.map(async (i) => (await textsOf(Math.floor(i / size)))[i % size]));
    if (asked !== state.asked) return;
    $("list").replaceChildren(...wanted.map((i, k) => card(i, texts[k])));
    $("found").textContent = `${state.found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} sentences`;
    $("page").textContent = `page ${state.page + 1} of ${pages}`;
    $("previous").disabled = state.page === 0;
    $("next").disabled = state.page === pages - 1;
    $("list").setAttribute("aria-busy", "false");
  };

  // Those of the sentences, in order, that have all the words; null if it is not asked any more.
  const having = async (words, candidates, asked) => {
    const found = [];
    let pack = -1, texts;
    for (const i of candidates) {
      if (Math.floor(i / size) !== pack) {
        pack = Math.floor(i / size);
        texts = await textsOf(pack);
        if (asked !== state.asked) return null;
        $("found").textContent = `searching, ${Math.floor((100 * i) / rows.length)} %`;
      }
      const text = texts[i % size].flat().join("\n").toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(i);
    }
    return found;
  };

  const ORDERS = {
    line: (i) => i,
    gain: (i) => -gain(i),
    loss: gain,
    best: (i) => -rows[i][SCORES][+$("first").value],
    worst: (i) => rows[i][SCORES][+$("first").value],
    long: (i) => -rows[i][LENGTH],
    short: (i) => rows[i][LENGTH],
  };

  const update = async () => {
    const asked = ++state.asked;
    $("list").setAttribute("aria-busy", "true");
    const words = $("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const low = $("shortest").value === "" ? 0 : +$("shortest").value;
    const high = $("longest").value === "" ? Infinity : +$("longest").value;
    const [place, who] = $("won").value.split(":");
    const fits = (row) => row[LENGTH] >= low && row[LENGTH] <= high && (!who || row[WON][+place] === who);
    let found = [...rows.keys()].filter((i) => fits(rows[i]));
    if (words.length) found = await having(words, found, asked);
    if (asked !== state.asked) return;
    const key = ORDERS[$("order").value];
    const keys = new Map(found.map((i) => [i, key(i)]));
    found.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    state.found = found;
    state.page = 0;
    await show(asked);
  };

  const option = (value, text) => new Option(text, value);
  systems.forEach((name, k) => { $("first").add(option(k, name)); $("second").add(option(k, name)); });
  const main = raced.length ? systems.indexOf(raced[0]) : systems.length - 1;
  $("first").value = main;
  $("second").value = main === 0 ? Math.min(1, systems.length - 1) : 0;
  if (systems.length < 2) {
    $("second").parentElement.hidden = true;
    for (const value of ["gain", "loss"]) $("order").querySelector(`[value=${value}]`).remove();
  }
  $("won").add(option("", "any"));
  raced.forEach((name, k) => {
    const prefix = raced.length > 1 ? `${name}: ` : "";
    $("won").add(option(`${k}:l`, `${prefix}L2R`));
    $("won").add(option(`${k}:r`, `${prefix}R2L`));
  });
  $("won-label").hidden = raced.length === 0;
  for (const id of ["words", "shortest", "longest", "won", "first", "second", "order"])
    for (const kind of ["input", "change"]) $(id).addEventListener(kind, update);
  $("browse").addEventListener("submit", (event) => event.preventDefault());
  const turn = async (by) => {
    state.page += by;
    await show(++state.asked);
    $("browse").scrollIntoView({ block: "start" });
  };
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  show(state.asked);
})();
