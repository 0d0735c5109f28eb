// Runs programs in the worker, one at a time: time limit, stop, and a new worker after everything that breaks one.

export class Runner {
  /** `makeWorker()` starts a worker; `onState({state, done, total})` is told of cold, loading, ready and running. */
  constructor(makeWorker, onState, seconds) {
    this.makeWorker = makeWorker;
    this.onState = onState;
    this.seconds = seconds;
    this.worker = null;
    this.job = null;
    this.count = 0;
  }

  /** Starts loading Python, if it is not there. */
  warm() {
    if (this.worker) return;
    this.isReady = false;
    this.worker = this.makeWorker();
    this.onState({ state: "loading", done: 0, total: 1 });
    this.worker.onmessage = ({ data }) => this.#told(data);
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.#told({ type: "fatal", message: event.message || "its script could not be loaded" });
    };
  }

  /**
   * {output, errors, error, cut, ended}. ended: "normally", "stopped", "timeout", "memory", "broken" or, where Python
   * never started, "unavailable"; error: Python's traceback, or what broke.
   */
  run(source, input) {
    if (this.job) return Promise.reject(new Error("a program is running"));
    this.warm();
    return new Promise((resolve) => {
      const id = ++this.count;
      this.job = { id, resolve, output: "", errors: "", source, input };
      if (this.isReady) this.#begin();
    });
  }

  #begin() {
    const { id, source, input } = this.job;
    this.onState({ state: "running" });
    this.job.timer = setTimeout(() => this.#replace("timeout"), this.seconds * 1000);
    this.worker.postMessage({ type: "run", id, source, input });
  }

  stop() {
    if (this.job) this.#replace("stopped");
  }

  #told(data) {
    if (data.type === "progress") this.onState({ state: "loading", done: data.done, total: data.total });
    else if (data.type === "ready") {
      this.isReady = true;
      if (this.job) this.#begin();
      else this.onState({ state: "ready" });
    } else if (data.type === "fatal") this.#replace(this.isReady ? "broken" : "unavailable", data.message);
    else if (this.job && data.id === this.job.id) {
      if (data.type === "text") this.job[data.stream] += data.text;
      else if (data.memory) this.#replace("memory", data.error);
      else this.#finish("normally", data.error, data.cut);
    }
  }

  /** A worker that was stopped, ran too long or broke is never used again. A new one is started at the next run. */
  #replace(ended, error = null) {
    this.worker?.terminate();
    this.worker = null;
    this.isReady = false;
    this.onState({ state: "cold", ended, error });
    if (this.job) this.#finish(ended, error, false);
    if (!["broken", "unavailable"].includes(ended)) this.warm();
  }

  #finish(ended, error, cut) {
    const { resolve, output, errors, timer } = this.job;
    clearTimeout(timer);
    this.job = null;
    if (this.isReady) this.onState({ state: "ready" });
    resolve({ output, errors, error, cut, ended });
  }
}
