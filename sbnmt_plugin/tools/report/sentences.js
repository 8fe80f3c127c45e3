// The list of sentences: filtered and sorted as data, shown a page at a time, so that
// ten thousand sentences cost no more than ten.
(() => {
  "use strict";
  const PAGE = 10;
  const { systems, raced, rows } = JSON.parse(document.getElementById("sentences-data").textContent);
  const [SOURCE, GOLDS, OUTPUTS, SCORES, LENGTH, WON] = [0, 1, 2, 3, 4, 5];
  const WORD = /[\u3400-\u9fff\uf900-\ufaff]|[\p{L}\p{M}\p{N}'’@_-]+|\S/gu;
  const $ = (id) => document.getElementById(id);
  const state = { page: 0, found: rows.map((_, i) => i) };
  const haystacks = new Array(rows.length);

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text; // never parsed as HTML
    if (className) made.className = className;
    return made;
  };

  const haystack = (i) => {
    const row = rows[i];
    haystacks[i] ??= [row[SOURCE], ...row[GOLDS], ...row[OUTPUTS]].join("\n").toLowerCase();
    return haystacks[i];
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

  const card = (i) => {
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
    line(list, "source", "", plain(row[SOURCE], "source"));
    row[GOLDS].forEach((text, k) =>
      line(list, row[GOLDS].length > 1 ? `reference ${k + 1}` : "reference", "", plain(text, "gold")));
    row[OUTPUTS].forEach((text, k) =>
      line(list, systems[k], row[SCORES][k].toFixed(1), marked(text, row[GOLDS])));
    article.append(head, list);
    return article;
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const start = state.page * PAGE;
    $("list").replaceChildren(...state.found.slice(start, start + PAGE).map(card));
    $("found").textContent = `${state.found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} sentences`;
    $("page").textContent = `page ${state.page + 1} of ${pages}`;
    $("previous").disabled = state.page === 0;
    $("next").disabled = state.page === pages - 1;
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

  const update = () => {
    const words = $("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const low = $("shortest").value === "" ? 0 : +$("shortest").value;
    const high = $("longest").value === "" ? Infinity : +$("longest").value;
    const [place, who] = $("won").value.split(":");
    const found = [];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      if (row[LENGTH] < low || row[LENGTH] > high) continue;
      if (who && row[WON][+place] !== who) continue;
      if (words.length && !words.every((word) => haystack(i).includes(word))) continue;
      found.push(i);
    }
    const key = ORDERS[$("order").value];
    const keys = new Map(found.map((i) => [i, key(i)]));
    found.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    state.found = found;
    state.page = 0;
    show();
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
  const turn = (by) => { state.page += by; show(); $("browse").scrollIntoView({ block: "start" }); };
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  show();
})();
