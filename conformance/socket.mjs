// A WebSocket that speaks frames, not the protocol: what a probe sends is sent as it
// is, and what the server says is kept in order.
import { WebSocket } from "ws";
import { authorization, socketURL } from "./target.mjs";

const PATIENCE = 5_000; // ms to wait for what has to come

export class Socket {
  #socket;
  #arrived = []; // messages that nobody has taken
  #closed; // { code, reason } once the server has closed
  #wake = () => {};

  /** open resolves once the handshake is done. Its headers carry the token unless others are given. */
  static open({ url = socketURL, protocols = ["graphql-transport-ws"], headers = { authorization }, ...options } = {}) {
    return new Promise((resolve, reject) => {
      const opened = new Socket();
      const socket = new WebSocket(url, protocols, { headers, handshakeTimeout: PATIENCE, ...options });
      opened.#socket = socket;
      socket.on("message", (data, binary) => opened.#take(binary ? { binary: data } : JSON.parse(data)));
      socket.on("close", (code, reason) => {
        opened.#closed = { code, reason: String(reason) };
        opened.#wake();
      });
      socket.on("unexpected-response", (_, response) => {
        reject(Object.assign(new Error(`refused with ${response.statusCode}`), { status: response.statusCode }));
        response.destroy();
      });
      socket.on("error", reject); // after the handshake: of no effect, since close follows
      socket.on("open", () => resolve(opened));
    });
  }

  get protocol() {
    return this.#socket.protocol;
  }

  /** unheard are the messages that nobody has received. */
  get unheard() {
    return this.#arrived;
  }

  /** send sends an object as JSON, and text or bytes as they are. */
  send(message, options) {
    const raw = typeof message === "string" || Buffer.isBuffer(message);
    this.#socket.send(raw ? message : JSON.stringify(message), options);
    return this;
  }

  /** receive resolves with the server's next message. */
  async receive() {
    await this.#until(() => this.#arrived.length > 0);
    if (this.#arrived.length === 0) {
      const { code, reason } = this.#closed;
      throw Object.assign(new Error(`closed with ${code} ${reason}`), { closedWith: code });
    }
    return this.#arrived.shift();
  }

  /** closing resolves with the code that the server closes with, whatever it says before. */
  async closing(patience = PATIENCE) {
    await this.#until(() => false, patience);
    const { code, reason } = this.#closed;
    if (code >= 4000 && (reason === "" || Buffer.byteLength(reason) > 123)) {
      throw new Error(`${code} is to have a reason of 1 to 123 bytes, has ${JSON.stringify(reason)}`);
    }
    return code;
  }

  /** init signs in, and expects the acknowledgement. */
  async init(payload) {
    const ack = await this.send({ type: "connection_init", payload }).receive();
    if (ack.type !== "connection_ack") throw new Error(`not an acknowledgement: ${JSON.stringify(ack)}`);
    return ack;
  }

  subscribe(id, query, variables, more) {
    return this.send({ id, type: "subscribe", payload: { query, variables, ...more } });
  }

  complete(id) {
    return this.send({ id, type: "complete" });
  }

  /** result resolves with what an operation of one result says: the types of its messages, and its payload. */
  async result(id) {
    const types = [];
    for (let payload; ; ) {
      const message = await this.receive();
      if (message.id !== id) throw new Error(`not of ${id}: ${JSON.stringify(message)}`);
      types.push(message.type);
      payload ??= message.payload;
      if (message.type !== "next") return { types, payload };
    }
  }

  /** fence runs a query, and resolves with the messages of others that came before its end. */
  async fence() {
    this.subscribe("fence", "{ __typename }");
    for (const before = []; ; ) {
      const message = await this.receive();
      if (message.id !== "fence") before.push(message);
      else if (message.type === "complete") return before;
    }
  }

  /** close closes as the protocol tells a client to. */
  close() {
    this.#socket.close(1000);
    return this;
  }

  terminate() {
    this.#socket.terminate();
  }

  #take(message) {
    this.#arrived.push(message);
    this.#wake();
  }

  async #until(condition, patience = PATIENCE) {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#wake();
    }, patience);
    while (!condition() && !this.#closed && !late) await new Promise((wake) => (this.#wake = wake));
    clearTimeout(timer);
    if (late) throw new Error(`nothing came within ${patience} ms`);
  }
}
