// Looks into the process of a test tool in JavaScript: which functions that decide were exchanged. It
// runs before the project's own code, under Node 12 and later. Who writes to such a function is seen at
// that moment, also where it is put back; what was redefined otherwise is seen when the process ends.
// It must never fail or print, and needs nothing later that the project could have changed.
'use strict';
const fs = require('fs');
const path = require('path');
const Module = require('module');

const { defineProperty, defineProperties, getOwnPropertyDescriptor, keys } = Object;
const names = Object.getOwnPropertyNames;
const { apply } = Reflect;
const { stringify } = JSON;
const { writeSync } = fs;
const { relative, dirname } = path;
const { captureStackTrace } = Error;
const PLACE = dirname(__dirname);
const CWD = process.cwd();
const MOST = 200;
const guarded = [];
const watched = [];
const found = Object.create(null);
let fd = -1;
let notes = 0;
let test = '';
let looks = 0;

function write(event) {
  try {
    if (fd >= 0) writeSync(fd, `${stringify(event)}\n`);
  } catch {
    fd = -1;
  }
}

function opened(tool) {
  const random = require('crypto').randomBytes(6).toString('hex');
  const time = String(Date.now()).padStart(20, '0');
  fd = fs.openSync(`${PLACE}/look-${tool}-${time}-${process.pid}-${random}.jsonl`, 'ax');
  fs.fchmodSync(fd, 0o644);
  write({ k: 'start', tool, cwd: CWD });
}

function writer() {
  // The file whose code writes, as far as the stack tells.
  const before = getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  const limit = getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  let file = '';
  try {
    defineProperty(Error, 'stackTraceLimit', { value: 30, writable: true, configurable: true, enumerable: true });
    defineProperty(Error, 'prepareStackTrace', { value: (_, sites) => sites, configurable: true });
    const holder = {};
    captureStackTrace(holder);
    const sites = holder.stack;
    for (let at = 0; at < sites.length && !file; at += 1) {
      const each = String(sites[at].getFileName() || '');
      const own = each.slice(0, PLACE.length) === PLACE || each.slice(0, 5) === 'node:';
      if (!own && (each[0] === '/' || each.slice(0, 7) === 'file://')) file = each;
    }
  } catch {
    file = '';
  }
  try {
    if (limit) defineProperty(Error, 'stackTraceLimit', limit);
    if (before) defineProperty(Error, 'prepareStackTrace', before);
    else delete Error.prepareStackTrace;
  } catch {
    // Then it stays.
  }
  return relative(CWD, file.slice(0, 7) === 'file://' ? decodeURI(file.slice(7)) : file);
}

function note(label, by) {
  const what = by ? `${label} (by ${by})` : label;
  if (notes >= MOST || found[what]) return;
  notes += 1;
  found[what] = found[label] = true;
  write({ k: 'exchanged', n: what, t: test });
}

function guard(object, label) {
  // From here on each write to a function of this object is told; it works as it did.
  const first = Object.create(null);
  guarded.push({ object, label, first });
  for (const key of names(object)) {
    const was = getOwnPropertyDescriptor(object, key);
    if (!was.configurable || !was.writable || typeof was.value !== 'function' || key === 'constructor') continue;
    const original = was.value;
    let value = original;
    const get = () => value;
    first[key] = { original, get };
    defineProperty(object, key, {
      configurable: true,
      enumerable: was.enumerable,
      get,
      set(other) {
        // On an object that inherits it, as one module's own require, it decides there.
        if (other !== original) note(`${label}.${key}`, writer());
        if (this === object) value = other;
        else defineProperty(this, key, { value: other, writable: true, enumerable: true, configurable: true });
      },
    });
  }
}

function absent(object, key, label) {
  // A property that decides nothing as long as nobody gives it a value.
  let value;
  defineProperty(object, key, {
    configurable: true,
    enumerable: false,
    get: () => value,
    set(other) {
      note(label, writer());
      value = other;
    },
  });
}

function watch(object, label) {
  // Compared when there is an occasion.
  const first = Object.create(null);
  for (const key of names(object)) {
    const was = getOwnPropertyDescriptor(object, key);
    if (typeof was.value === 'function') first[key] = was.value;
  }
  watched.push({ object, label, first });
}

function redefined(object, key, descriptor) {
  for (let at = 0; at < guarded.length; at += 1) {
    const held = guarded[at];
    const first = held.object === object ? held.first[key] : undefined;
    if (first && !(descriptor && (descriptor.get === first.get || descriptor.value === first.original))) {
      note(`${held.label}.${String(key)}`, writer());
    }
  }
}

function look(where) {
  test = where || test;
  looks += 1;
  for (let at = 0; at < guarded.length; at += 1) {
    const { object, label, first } = guarded[at];
    for (const key in first) {
      const now = getOwnPropertyDescriptor(object, key);
      const { original, get } = first[key];
      if (!now || (now.get !== get && now.value !== original)) note(`${label}.${key}`);
      else if (now.get === get && get() !== original) note(`${label}.${key}`);
    }
  }
  for (let at = 0; at < watched.length; at += 1) {
    const { object, label, first } = watched[at];
    for (const key in first) {
      const now = getOwnPropertyDescriptor(object, key);
      if (!now || now.value !== first[key]) note(`${label}.${key}`);
    }
  }
}

function hear(owner, name, told) {
  // The same native function, which tells what it is called with.
  const native = owner[name];
  defineProperty(owner, name, {
    configurable: true,
    writable: true,
    enumerable: false,
    value: new Proxy(native, {
      apply(target, self, given) {
        try {
          told(given);
        } catch {
          // It is done all the same.
        }
        return apply(target, self, given);
      },
    }),
  });
}

function arm(tool) {
  if (fd >= 0) return;
  opened(tool);
  const assert = require('assert');
  guard(assert, 'assert');
  if (assert.strict && assert.strict !== assert) guard(assert.strict, 'assert.strict');
  try {
    if (tool === 'node') guard(require('node:test'), 'node:test');
  } catch {
    // Older than that runner.
  }
  guard(Module, 'Module');
  guard(Module.prototype, 'Module.prototype');
  guard(Module._extensions, 'Module._extensions');
  // What tests themselves read and compute with.
  const library = { fs, 'fs.promises': fs.promises, path };
  for (const label of keys(library)) if (library[label]) watch(library[label], label);
  for (const type of [Object, Array, String, Number, RegExp, Map, Set, Date]) {
    watch(type.prototype, `${type.name}.prototype`);
  }
  for (const name of ['assert', 'assert/strict', 'test']) absent(Module._cache, name, `require.cache.${name}`);
  hear(Object, 'defineProperty', ([object, key, descriptor]) => redefined(object, key, descriptor));
  hear(Reflect, 'defineProperty', ([object, key, descriptor]) => redefined(object, key, descriptor));
  hear(Object, 'defineProperties', ([object, all]) => {
    for (const key of keys(all)) redefined(object, key, all[key]);
  });
  process.on('exit', () => {
    look('');
    write({ k: 'end', looked: looks });
  });
}

function hide() {
  // Processes that tests start are none of ours.
  const kept = [];
  for (const word of (process.env.NODE_OPTIONS || '').split(' ')) if (!word.includes(PLACE)) kept.push(word);
  const rest = kept.filter((word) => !/^--test-reporter-destination=(stdout|\/dev\/null)$/.test(word)).join(' ').trim();
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
}

function start() {
  let main = true;
  try {
    main = require('worker_threads').isMainThread;
  } catch {
    // Older than workers.
  }
  if (!main) return;
  const runner = process.execArgv.includes('--test') && !process.execArgv.some((word) => /isolation=none/.test(word));
  const script = process.argv[1] || '';
  test = relative(CWD, script);
  if (process.env.NODE_TEST_CONTEXT) hide();
  else if (runner || !script || /[\\/]node_modules[\\/]/.test(script) || !fs.existsSync(script)) return;
  arm('node');
}

module.exports = { arm, guard, watch, look };
if (module.parent === null || module.parent === undefined || /internal\/preload/.test(module.parent.id)) {
  try {
    start();
    delete require.cache[__filename];
  } catch {
    // Then nothing is claimed.
  }
}
