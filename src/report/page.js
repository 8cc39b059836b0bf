'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const id = name => document.getElementById(name);

  // What the reader set, kept over reloads. A page opened from a file may have no storage.
  const store = {
    get(key) { try { return sessionStorage.getItem(key); } catch (e) { return null; } },
    set(key, value) { try { sessionStorage.setItem(key, value); } catch (e) { /* not kept */ } },
  };
  for (const box of all('input[id]:not([type=search])')) {
    const key = location.pathname + '#' + box.id, kept = store.get(key);
    if (kept !== null) box.checked = kept === '1';
    box.addEventListener('change', () => {
      const group = box.name ? all(`input[name=${box.name}]`) : [box];
      for (const each of group) store.set(location.pathname + '#' + each.id, each.checked ? '1' : '0');
    });
  }

  // ---- numbers, as the page writes them --------------------------------------------------
  const count = v => String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');
  const number = v => {
    const size = Math.abs(v);
    if (size >= 1e6 || (size > 0 && size < 1e-4)) return String(v.toExponential(2)).replace('e+', 'e').replace(/\.?0+e/, 'e');
    return size >= 1000 ? count(v) : String(+v.toPrecision(4));
  };
  const formats = {
    number,
    share: v => (v === 0 || v === 1 ? 100 * v : (100 * v).toFixed(2)) + '\u00a0%',
    seconds: v => v < 1 ? +(1e3 * v).toPrecision(3) + '\u00a0ms' : +v.toPrecision(3) + '\u00a0s',
  };

  // ---- values of curves ------------------------------------------------------------------
  const tip = id('tip');
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (list[mid] < x) low = mid + 1; else high = mid;
    }
    return low > 0 && x - list[low - 1] < list[low] - x ? low - 1 : low;
  };
  const element = (name, kind, text) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const place = (left, top) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(left + 16, innerWidth - box.width - 8)) + 'px';
    tip.style.top = Math.max(8, top - box.height - 12) + 'px';
  };

  class Chart {
    constructor(spec) {
      this.spec = spec;
      this.figure = id(spec.id);
      this.plot = this.figure.querySelector('.plot');
      this.step = null;
      this.plot.addEventListener('pointermove', e => this.point(e));
      this.plot.addEventListener('pointerdown', e => this.point(e));
      this.plot.addEventListener('pointerleave', () => this.clear());
      this.plot.addEventListener('blur', () => this.clear());
      this.plot.addEventListener('keydown', e => this.key(e));
    }
    shown() {
      const raw = this.figure.querySelector('.show-raw');
      return this.spec.series.filter(s => s.at.length && !(s.kind === 'raw' && raw && !raw.checked) &&
        !(s.run >= 0 && id('run-' + s.run) && !id('run-' + s.run).checked));
    }
    point(e) {
      const box = this.plot.getBoundingClientRect(), [from, to] = this.spec.x;
      this.show(from + (to - from) * (e.clientX - box.left) / box.width);
    }
    key(e) {
      const series = this.shown()[0];
      if (!series || !['ArrowLeft', 'ArrowRight', 'Home', 'End', 'Escape'].includes(e.key)) return;
      e.preventDefault();
      if (e.key === 'Escape') { this.clear(); return; }
      const last = series.at.length - 1;
      let i = this.step === null ? last : nearest(series.at, this.step);
      if (this.step !== null && e.key === 'ArrowLeft') i = Math.max(0, i - 1);
      if (this.step !== null && e.key === 'ArrowRight') i = Math.min(last, i + 1);
      if (e.key === 'Home') i = 0;
      if (e.key === 'End') i = last;
      this.show(series.at[i]);
    }
    show(wanted) {
      const series = this.shown();
      if (!series.length) { this.clear(); return; }
      // The step shown is that of the nearest value of any curve.
      let step = null;
      for (const s of series) {
        const at = s.at[nearest(s.at, wanted)];
        if (step === null || Math.abs(at - wanted) < Math.abs(step - wanted)) step = at;
      }
      this.clear();
      this.step = step;
      const [from, to] = this.spec.x, left = 100 * (step - from) / (to - from);
      const log = this.figure.querySelector('.show-log'), isLog = log && log.checked && this.spec.log;
      const [low, high] = isLog ? this.spec.log : this.spec.y;
      const cross = element('div', 'cross');
      cross.style.left = left + '%';
      this.plot.append(cross);
      tip.replaceChildren(element('b', '', this.where(step)));
      const room = (to - from) / 30;
      for (const s of series) {
        const i = nearest(s.at, step), value = s.v[i];
        if (value === null || (s.kind !== 'dots' && Math.abs(s.at[i] - step) > Math.max(room, 1))) continue;
        const row = element('div', 'c' + s.color);
        const when = s.at[i] === step ? '' : ' (' + this.where(s.at[i]) + ')';
        row.append(element('i'), element('span', '', s.name + when),
          element('em', '', formats[this.spec.format](value)));
        tip.append(row);
        if (s.kind === 'area' || s.kind === 'raw') continue;
        const mark = element('div', 'mark c' + s.color);
        mark.style.left = 100 * (s.at[i] - from) / (to - from) + '%';
        mark.style.top = 100 - 100 * ((isLog ? Math.log10(value) : value) - low) / (high - low) + '%';
        if (!isLog || value > 0) this.plot.append(mark);
      }
      tip.hidden = false;
      const box = this.plot.getBoundingClientRect();
      place(box.left + box.width * left / 100, box.top + box.height / 2);
    }
    where(step) {
      return (this.spec.axis || 'step') + ' ' + count(step) + (this.spec.unit || '');
    }
    clear() {
      for (const old of all('.cross, .mark', this.plot)) old.remove();
      this.step = null;
      tip.hidden = true;
    }
  }
  for (const spec of data.charts) new Chart(spec);

  // ---- tables ----------------------------------------------------------------------------
  for (const box of all('.filter')) {
    box.hidden = false;
    box.addEventListener('input', () => {
      const wanted = box.value.trim().toLowerCase();
      for (const row of all('tbody tr', id(box.dataset.filter)))
        row.hidden = wanted !== '' && !row.textContent.toLowerCase().includes(wanted);
    });
  }

  // Headings that sort the table of runs or points; the legends follow the order of runs. Rows without
  // a value are last.
  for (const table of all('.compare')) {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    table.classList.add('sorts');
    const sort = (column, order) => {
      const sign = order === 'ascending' ? 1 : -1, number = heads[column].classList.contains('n');
      const value = row => {
        const cell = row.cells[column];
        return number ? (cell.dataset.v === undefined ? null : +cell.dataset.v) : cell.textContent;
      };
      const compare = (a, b) => {
        const x = value(a), y = value(b);
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (number ? x - y : x.localeCompare(y, undefined, { numeric: true })) ||
          a.dataset.run - b.dataset.run;
      };
      const rows = Array.from(body.rows).sort(compare);
      body.append(...rows);
      heads.forEach((head, i) => head.setAttribute('aria-sort', i === column ? order : 'none'));
      if (!id('run-0')) return; // rows are points, not runs
      const place = new Map(rows.map((row, i) => [row.dataset.run, i]));
      for (const legend of all('.chart .legend'))
        legend.append(...Array.from(legend.children).sort((a, b) =>
          place.get(a.dataset.run) - place.get(b.dataset.run)));
    };
    heads.forEach((head, i) => {
      const button = element('button', '', head.textContent);
      button.type = 'button';
      button.addEventListener('click', () => {
        const now = head.getAttribute('aria-sort'), first = head.dataset.first;
        const other = first === 'ascending' ? 'descending' : 'ascending';
        sort(i, now === first ? other : first);
      });
      head.replaceChildren(button);
      head.setAttribute('aria-sort', 'none');
    });
  }

  const journal = document.querySelector('.journal');
  if (journal) journal.scrollTop = journal.scrollHeight; // the newest lines

  // ---- the matrix of many classes --------------------------------------------------------
  for (const box of all('[data-matrix]')) {
    const m = data.matrices.find(each => each.index === +box.dataset.matrix), card = box.parentElement;
    if (!m) continue;
    const sheet = box.querySelector('.sheet'), here = box.querySelector('.here');
    const out = card.querySelector('.cell'), cells = new Map();
    for (let i = 0; i + 2 < m.cells.length; i += 3)
      cells.set(m.cells[i] * m.classes + m.cells[i + 1], m.cells[i + 2]);
    let at = null, zoom = 1;
    const look = (truth, predicted) => {
      at = [truth, predicted];
      const n = cells.get(truth * m.classes + predicted), of = m.of[truth];
      const times = n !== undefined ? count(n) : m.least ? 'at most ' + count(m.least) : '0';
      out.textContent = `true: ${m.names[truth]}, predicted: ${m.names[predicted]}: ${times} of ${count(of)}` +
        (of > 0 && (n !== undefined || !m.least) ? ` (${formats.share((n || 0) / of)})` : '');
      const part = 100 / m.classes;
      Object.assign(here.style, { left: predicted * part + '%', top: truth * part + '%',
        width: `max(7px, ${part}%)`, height: `max(7px, ${part}%)` });
      here.hidden = false;
    };
    const cellAt = e => {
      const r = sheet.getBoundingClientRect(), k = m.classes;
      const clamp = v => Math.max(0, Math.min(k - 1, Math.floor(k * v)));
      look(clamp((e.clientY - r.top) / r.height), clamp((e.clientX - r.left) / r.width));
    };
    box.addEventListener('pointermove', cellAt);
    box.addEventListener('pointerdown', cellAt);
    box.addEventListener('keydown', e => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
      if (!move) return;
      e.preventDefault();
      const clamp = v => Math.max(0, Math.min(m.classes - 1, v));
      look(at ? clamp(at[0] + move[0]) : 0, at ? clamp(at[1] + move[1]) : 0);
      here.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    });
    card.querySelector('.zoom').hidden = false;
    for (const button of all('[data-zoom]', card))
      button.addEventListener('click', () => {
        const x = (box.scrollLeft + box.clientWidth / 2) / sheet.offsetWidth;
        const y = (box.scrollTop + box.clientHeight / 2) / sheet.offsetHeight;
        zoom = Math.max(1, Math.min(32, zoom * (button.dataset.zoom > 0 ? 2 : 0.5)));
        sheet.style.width = 100 * zoom + '%';
        sheet.firstElementChild.classList.toggle('fine', sheet.offsetWidth < 1.5 * m.classes);
        box.scrollLeft = x * sheet.offsetWidth - box.clientWidth / 2;
        box.scrollTop = y * sheet.offsetHeight - box.clientHeight / 2;
      });
  }

  // ---- following a run -------------------------------------------------------------------
  if (data.live) {
    const live = id('live');
    live.parentElement.hidden = false;
    let busy = 0;
    for (const kind of ['pointermove', 'keydown', 'wheel'])
      addEventListener(kind, () => { busy = Date.now(); }, { passive: true });
    setInterval(() => {
      if (live.checked && !document.hidden && Date.now() - busy > 5000) location.reload();
    }, 10000);
    const state = document.querySelector('.state');
    const age = Date.now() / 1000 - data.written;
    if (state && age > 600) state.textContent += ', not heard of for ' + count(age / 60) + ' min';
  }
})();
