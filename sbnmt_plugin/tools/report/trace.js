// The view into the two beams: each step of the search, rebuilt from who continued whom.
(() => {
  "use strict";
  const traces = JSON.parse(document.getElementById("trace-data").textContent);
  const $ = (id) => document.getElementById(`trace-${id}`);
  const NAMES = ["l2r", "r2l"];
  const OTHER = { l2r: "r2l", r2l: "l2r" };
  const LABEL = { l2r: "L2R", r2l: "R2L" };
  const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
  const state = { sentence: 0, step: 0, rank: 0 };
  const view = $("view");

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text; // never as HTML
    if (className) made.className = className;
    return made;
  };
  const number = (x, digits = 2) => (x === null || x === undefined ? "–" : x.toFixed(digits).replace("-", "−"));
  const percent = (x) => `${Math.round(100 * x)} %`;

  // The tokens of a live hypothesis after a step, in the order of writing.
  const written = (trace, name, step, rank) => {
    const tokens = [];
    for (let at = step - 1, k = rank; at >= 0; at--) {
      const entry = trace.steps[at][name][k];
      tokens.unshift(entry.token);
      k = entry.parent;
    }
    return tokens;
  };
  // In natural order: what R2L wrote last stands first.
  const natural = (name, tokens) => (name === "r2l" ? tokens.slice().reverse() : tokens);

  const finishedBy = (trace, step) => {
    const found = [];
    trace.steps.slice(0, step).forEach((entry, at) =>
      entry.finished.forEach((one) => found.push({ ...one, step: at + 1 })));
    const answering = found.filter((one) => trace.answer === "best" || one.direction === trace.answer);
    // as the search ranks: score, then the earlier, then L2R first
    answering.sort((a, b) => b.score - a.score || a.step - b.step || (a.direction > b.direction) - (a.direction < b.direction));
    return [answering.slice(0, trace.beam), answering.slice(trace.beam)];
  };

  const spans = (into, tokens, fresh) => {
    tokens.forEach((token, i) => {
      if (i) into.append(" ");
      into.append(element("bdi", token, i === fresh ? "token fresh" : "token"));
    });
    if (!tokens.length) into.append(element("span", "nothing yet", "empty"));
  };

  const lane = (trace, name, rank) => {
    const cell = element("div", undefined, `lane ${name}`);
    const step = state.step;
    const entry = step ? trace.steps[step - 1][name][rank] : null;
    const dead = step ? entry.score === null : rank > 0;
    const head = element("div", undefined, "head");
    head.append(element("span", `${LABEL[name]} ${rank + 1}`, "who"), element("span", dead ? "no hypothesis" : number(step ? entry.score : 0), "score"));
    cell.append(head);
    if (dead) {
      cell.classList.add("dead");
      return cell;
    }
    const tokens = natural(name, written(trace, name, step, rank));
    const text = element("div", undefined, "text");
    spans(text, tokens, step ? (name === "r2l" ? 0 : tokens.length - 1) : -1);
    cell.append(text);
    if (step)
      cell.append(element("div", `continues ${LABEL[name]} ${entry.parent + 1} · partner was ${LABEL[OTHER[name]]} ${entry.partner + 1}`, "from"));
    return cell;
  };

  const board = (trace) => {
    const table = $("board");
    table.dir = RTL.test(trace.pool[0].tokens.join("")) ? "rtl" : "ltr";
    table.replaceChildren();
    const heads = element("div", undefined, "row heads");
    heads.append(element("div", "L2R: from the beginning", "l2r"), element("div", "R2L: from the end", "r2l"));
    table.append(heads);
    const count = trace.steps[0].l2r.length;
    for (let rank = 0; rank < count; rank++) {
      const row = element("div", undefined, rank === state.rank ? "row chosen" : "row");
      row.dataset.rank = rank;
      row.append(lane(trace, "l2r", rank), lane(trace, "r2l", rank));
      row.addEventListener("click", () => { state.rank = rank; show(); });
      table.append(row);
    }
  };

  // Where a hypothesis looked while it chose its newest token.
  const look = (trace, name) => {
    const box = element("div", undefined, `look ${name}`);
    if (!state.step) {
      box.append(element("p", `${LABEL[name]} has its tag only.`, "soft"));
      return box;
    }
    const entry = trace.steps[state.step - 1][name][state.rank];
    if (!entry || entry.score === null) {
      box.append(element("p", `${LABEL[name]} ${state.rank + 1} is no hypothesis.`, "soft"));
      return box;
    }
    const other = OTHER[name];
    const title = element("p", `${LABEL[name]} ${state.rank + 1} wrote `, "title");
    title.append(element("bdi", entry.token, `token fresh ${name}`), ` and looked at ${LABEL[other]} ${entry.partner + 1}:`);
    box.append(title);
    const seen = [`<${other}>`, ...written(trace, other, state.step - 1, entry.partner)];
    const pairs = natural(other, seen.map((token, i) => [token, entry.look[i]]));
    const bars = element("div", undefined, "bars");
    bars.dir = $("board").dir;
    for (const [token, weight] of pairs) {
      const bar = element("div", undefined, "bar");
      const fill = element("span", undefined, `fill ${other}`);
      fill.style.height = `${Math.max(1, 44 * weight)}px`;
      const word = element("bdi", token, token === `<${other}>` ? "tag" : "word");
      bar.append(element("span", percent(weight), "weight"), fill, word);
      bar.title = `${token}: ${percent(weight)}`;
      bars.append(bar);
    }
    box.append(bars);
    const meter = element("div", undefined, "meter");
    const strip = element("div", undefined, "strip");
    const past = element("span", undefined, "past");
    const future = element("span", undefined, `share ${other}`);
    past.style.flexGrow = Math.max(0.001, 1 - entry.future);
    future.style.flexGrow = Math.max(0.001, entry.future);
    strip.append(past, future);
    const names = element("div", undefined, "names");
    names.append(
      element("span", `own history ${percent(1 - entry.future)}`),
      element("span", `future from ${LABEL[other]} ${percent(entry.future)}`));
    meter.append(strip, names);
    box.append(meter);
    return box;
  };

  const pool = (trace) => {
    const box = $("pool");
    const [inside, outside] = finishedBy(trace, state.step);
    box.replaceChildren(element("h3", `Finished: ${inside.length} of ${trace.beam}`));
    if (!inside.length) {
      box.append(element("p", "Nothing has ended yet.", "soft"));
      return;
    }
    const table = element("table"), body = element("tbody"), head = element("tr");
    for (const [text, className] of [["", ""], ["score", "value"], ["log p", "value"], ["tokens with </s>", "value"], ["text", ""], ["ended in", ""]])
      head.append(element("th", text, className));
    const thead = element("thead");
    thead.append(head);
    const last = state.step === trace.steps.length, best = trace.pool[0];
    const answers = (one) => last && one.direction === best.direction && one.tokens.join(" ") === best.tokens.join(" ");
    [...inside, ...outside].forEach((one, i) => {
      const row = element("tr", undefined, [i >= inside.length ? "out" : "", one.step === state.step ? "new" : "", answers(one) ? "answer" : ""].join(" ").trim());
      row.append(
        element("td", LABEL[one.direction], `won-${one.direction}`),
        element("td", number(one.score, 3), "value"),
        element("td", number(one.total), "value"),
        element("td", one.length, "value"));
      const text = element("td", one.tokens.length ? one.tokens.join(" ") : "(empty)", one.tokens.length ? "text" : "empty");
      text.dir = "auto";
      row.append(text, element("td", `step ${one.step}`));
      body.append(row);
    });
    table.append(thead, body);
    const scroll = element("div", undefined, "scroll");
    scroll.append(table);
    box.append(scroll);
    if (outside.length) box.append(element("p", `Grey: ended too, but not among the best ${trace.beam}.`, "signature"));
  };

  const why = (trace) => {
    const box = $("why");
    box.replaceChildren();
    if (state.step < trace.steps.length) {
      box.append(element("p", "The search goes on.", "soft"));
      return;
    }
    const answer = trace.pool[0];
    const rival = trace.pool.find((one) => one.direction !== answer.direction);
    const end = trace.steps[trace.steps.length - 1];
    box.append(element("h3", "Why this answer"));
    const quote = element("p", undefined, `final ${answer.direction}`);
    quote.dir = "auto";
    quote.append(element("bdi", answer.tokens.join(" ") || "(empty)"));
    box.append(quote);
    const worth = `${trace.penalty === "gnmt" ? `((5 + ${answer.length}) / 6)` : answer.length}^${trace.alpha}`;
    const scored = trace.rescore
      ? `score ${number(answer.score, 3)}: ${number(answer.pool_score, 3)} in the search, plus ${trace.rescore} times the log-probabilities without interaction, ${number(answer.l2r)} from L2R and ${number(answer.r2l)} from R2L, divided by ${worth}`
      : trace.alpha === 0
        ? `score ${number(answer.score, 3)}, the plain log-probability`
        : `score ${number(answer.score, 3)}: log-probability ${number(answer.total)} of ${answer.length} tokens with </s>, divided by ${worth}`;
    const list = element("ul");
    list.append(element("li", `${LABEL[answer.direction]} wrote it; ${scored}.`));
    list.append(element("li", trace.answer !== "best"
      ? `Only ${LABEL[trace.answer]} was allowed to answer.`
      : rival
        ? `${LABEL[rival.direction]}'s best in the pool, “${rival.tokens.join(" ")}”, has ${number(rival.score, 3)}, ${number(answer.score - rival.score, 3)} less.`
        : `${LABEL[OTHER[answer.direction]]} has nothing in the pool of the best ${trace.beam}.`));
    list.append(element("li", end.worst === null
      ? "The search ended because no hypothesis was left alive."
      : trace.stop === "first"
        ? `The search ended as soon as ${trace.beam} had finished.`
        : end.bound === null
          ? "The search ended because no hypothesis was left alive."
          : end.bound > end.worst
          ? `The search ended because nothing longer than ${trace.steps.length} tokens with </s> was sought once ${trace.beam} had finished.`
          : `The search ended because no live hypothesis could reach more than ${number(end.bound, 3)}, and the last place of the full pool has ${number(end.worst, 3)}.`));
    box.append(list);
  };

  const show = () => {
    const trace = traces[state.sentence];
    const most = trace.steps.length;
    state.step = Math.min(Math.max(0, state.step), most);
    state.rank = Math.min(Math.max(0, state.rank), trace.steps[0].l2r.length - 1);
    $("source").textContent = trace.source || "(empty)";
    $("step").textContent = `step ${state.step} of ${most}`;
    for (const id of ["start", "back"]) $(id).disabled = state.step === 0;
    for (const id of ["forward", "end"]) $(id).disabled = state.step === most;
    board(trace);
    $("looks").replaceChildren(...NAMES.map((name) => look(trace, name)));
    pool(trace);
    why(trace);
  };

  const go = (step) => { state.step = step; show(); };
  const KEYS = {
    ArrowRight: () => go(state.step + 1),
    ArrowLeft: () => go(state.step - 1),
    Home: () => go(0),
    End: () => go(Infinity),
    ArrowDown: () => { state.rank++; show(); },
    ArrowUp: () => { state.rank--; show(); },
  };
  view.addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
    const action = KEYS[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  traces.forEach((trace, i) => {
    const text = `${trace.id === null ? i + 1 : trace.id + 1}: ${trace.source}`;
    $("sentence").add(new Option(text.length > 70 ? `${text.slice(0, 69)}…` : text, i));
  });
  $("which").hidden = traces.length < 2;
  const pick = () => {
    if (state.sentence === +$("sentence").value) return;
    state.sentence = +$("sentence").value;
    state.rank = 0;
    go(0);
  };
  for (const kind of ["input", "change"]) $("sentence").addEventListener(kind, pick);
  // a button that becomes disabled would lose the keyboard: the view keeps it
  const press = (id, step) => $(id).addEventListener("click", () => { go(step()); view.focus({ preventScroll: true }); });
  press("forward", () => state.step + 1);
  press("back", () => state.step - 1);
  press("start", () => 0);
  press("end", () => Infinity);
  show();
})();
