/** A figure's model without a kernel: get, set, on, off, save_changes as anywidget has them. */
export class LocalModel {
  constructor(state) {
    this.start = { ...state };
    this.state = { ...state };
    this.callbacks = {};
    this.changed = new Set();
  }
  get(key) {
    return key === "start" ? this.start : this.state[key];
  }
  set(key, value) {
    if (typeof key === "object") return Object.entries(key).forEach(([name, one]) => this.set(name, one));
    if (this.state[key] === value) return;
    this.state[key] = value;
    this.changed.add(key);
  }
  on(event, callback) {
    this.callbacks[event] ??= new Set();
    this.callbacks[event].add(callback);
  }
  off(event, callback) {
    callback ? this.callbacks[event]?.delete(callback) : delete this.callbacks[event];
  }
  send() {}
  save_changes() {
    const changed = [...this.changed];
    this.changed.clear();
    for (const key of changed) this.callbacks[`change:${key}`]?.forEach((callback) => callback(this, this.state[key]));
    if (changed.length) this.callbacks.change?.forEach((callback) => callback(this));
  }
}
