// A reporter for Mocha that lets the chosen one report, and writes a JSON object a line beside it.
'use strict';
const fs = require('fs');
const path = require('path');
const MOST = 2000;

let told = {};
try {
  told = JSON.parse(process.env.AGENTRUNNER_MOCHA || '{}');
} catch {
  // Then there is no report.
}
delete process.env.AGENTRUNNER_MOCHA;
// The options are read by now, and a program under test may read its arguments.
const added = process.argv.indexOf(`--reporter=${__filename}`, 2);
if (added > 0) process.argv.splice(added, 1);

let look = () => {};
try {
  const held = require('./agentrunner_look.cjs');
  look = held.look;
  held.arm('mocha');
  // What the tool and the usual libraries of assertions decide with.
  const loaded = require(told.folder);
  const Mocha = loaded.default || loaded;
  for (const name of ['Runner', 'Runnable', 'Test', 'Hook', 'Suite', 'Context']) {
    if (Mocha[name]) held.guard(Mocha[name].prototype, `Mocha.${name}.prototype`);
  }
  for (const name of ['Object', 'Array', 'Function', 'Error', 'Promise', 'Reflect', 'JSON', 'Map', 'Set']) {
    held.watch(globalThis[name], name);
    if (globalThis[name].prototype) held.watch(globalThis[name].prototype, `${name}.prototype`);
  }
  delete require.cache[require.resolve('./agentrunner_look.cjs')];
  const chai = require(require.resolve('chai', { paths: [process.cwd()] }));
  held.guard(chai.Assertion.prototype, 'chai.Assertion.prototype');
  held.guard(chai.assert, 'chai.assert');
} catch {
  // What is not there is not looked at.
}

function usual() {
  const loaded = require(told.folder);
  const Mocha = loaded.default || loaded;
  const { reporters } = Mocha;
  const name = told.chosen || 'spec';
  if (reporters[name]) return reporters[name];
  for (const where of [name, path.resolve(name)]) {
    try {
      const found = require(require.resolve(where, { paths: [process.cwd(), told.folder] }));
      return found.default || found;
    } catch {
      // Not there.
    }
  }
  return reporters.spec;
}

function relative(file) {
  return file ? path.relative(process.cwd(), file).split(path.sep).join('/') : '';
}

function named(test) {
  const titles = test.titlePath ? test.titlePath() : [test.fullTitle ? test.fullTitle() : test.title];
  return [relative(test.file), ...titles].filter(Boolean).join(' > ');
}

// Where in its own file a test said no.
function placeIn(error, file) {
  for (const line of String(error.stack || '').split('\n')) {
    const hit = /(?:file:\/\/)?(\/[^()]+?):(\d+):\d+\)?$/.exec(line);
    if (hit && relative(hit[1]) === file) return `\n    at ${file}:${hit[2]}`;
  }
  return '';
}

// The error's kind and text; an assertion says below its first line which values differ.
function text(error) {
  const said = String(error.message || error);
  const full = error.name && error.message && !said.startsWith(error.name) ? `${error.name}: ${said}` : said;
  if (error.name !== 'AssertionError') return full;
  return full.slice(0, MOST).split('\n').map((line) => line.trim()).filter(Boolean).join(' ');
}

// The test that was tried again, for a test that is a further try of it.
function first(test) {
  const before = test.retriedTest && test.retriedTest();
  return before ? first(before) : test;
}

module.exports = class {
  constructor(runner, options) {
    const write = (event) => {
      try {
        if (told.file) fs.appendFileSync(told.file, `${JSON.stringify(event)}\n`);
      } catch {
        told.file = '';
      }
    };
    const seen = new Set();
    const result = (test, o, error) => {
      // A hook that fails stands for the tests of its group that do not run for it.
      if (test.type !== 'hook') seen.add(first(test));
      else if (test.parent && test.parent.eachTest) test.parent.eachTest((one) => seen.add(one));
      const f = relative(test.file);
      const place = error ? placeIn(error, f) : '';
      const m = error ? text(error).slice(0, MOST - place.length) + place : '';
      write({ k: 'test', n: named(test), o, f, m });
    };
    runner.on('test end', (test) => {
      try {
        look(named(test));
      } catch {
        // The reports go on.
      }
    });
    runner.on('test', (test) => write({ k: 'begin', n: named(test), f: relative(test.file) }));
    runner.on('pass', (test) => result(test, 'passed'));
    runner.on('pending', (test) => result(test, 'skipped'));
    runner.on('fail', (test, error) => {
      if (test.type === 'hook') write({ k: 'lost', n: named(test) });
      result(test, test.type === 'hook' ? 'error' : 'failed', error);
    });
    runner.on('end', () => write({ k: 'end', cut: seen.size < (runner.total || 0) }));
    this.usual = new (usual())(runner, options);
    if (typeof this.usual.done === 'function') {
      this.done = (failures, callback) => this.usual.done(failures, callback);
    }
  }
};
