// Rows of a long list, fetched page by page as they become visible.

const PAGE_ROWS = 200;
const KEPT_PAGES = 50;
const SETTLE_MS = 30;

export class Pages {
  /**
   * @param {(from: number, count: number) => Promise<{total: number, isComplete: boolean, rows: any[]}>} load
   * @param {() => void} onArrival
   */
  constructor(load, onArrival) {
    this.load = load;
    this.onArrival = onArrival;
    /** @type {Map<number, any[]|null>} pages by number; `null` is on its way */
    this.pages = new Map();
  }

  /** The first answer: the number of rows, and whether that is final. */
  begin() {
    return this.fetch(0);
  }

  /** Update the number of rows; a page that was not full is fetched again. */
  async more() {
    const answer = await this.load(0, 0);
    for (const [page, rows] of this.pages) {
      if (rows && rows.length < PAGE_ROWS && page * PAGE_ROWS + rows.length < answer.total)
        this.pages.delete(page);
    }
    return answer;
  }

  /** Row *index*, or `undefined` if it was not fetched yet. */
  get(index) {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /** Row *index*, fetched if needed. */
  async reach(index) {
    await this.fetch(Math.floor(index / PAGE_ROWS));
    return this.get(index);
  }

  /** Fetch the missing rows from *first* to *last* when scrolling has stopped. */
  want(first, last) {
    clearTimeout(this.timer);
    const missing = [];
    for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < last; page++) {
      if (!this.pages.has(page)) missing.push(page);
    }
    if (missing.length)
      this.timer = setTimeout(() => missing.forEach((page) => this.arrive(page)), SETTLE_MS);
  }

  async arrive(page) {
    try {
      await this.fetch(page);
      this.onArrival();
    } catch {
      this.pages.delete(page);
    }
  }

  async fetch(page) {
    this.pages.set(page, null);
    const answer = await this.load(page * PAGE_ROWS, PAGE_ROWS);
    this.pages.set(page, answer.rows);
    while (this.pages.size > KEPT_PAGES) this.pages.delete([...this.pages.keys()][0]);
    return answer;
  }
}
