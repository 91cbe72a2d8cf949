// A reporter for node:test: a JSON object a line, in a file of its own for each process.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const place = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MOST = 2000;
const MOST_PRINTED = 20000;

function opened() {
  const stamp = `${String(Date.now()).padStart(20, '0')}-${process.pid}-${randomBytes(6).toString('hex')}`;
  const fd = fs.openSync(path.join(place, `node-${stamp}.jsonl`), 'ax');
  fs.fchmodSync(fd, 0o644);
  return fd;
}

function relative(file) {
  if (!file) return '';
  try {
    const plain = file.startsWith('file:') ? fileURLToPath(file) : file;
    return path.relative(process.cwd(), plain).split(path.sep).join('/');
  } catch {
    return String(file);
  }
}

function outcome(data, failed) {
  if (data.skip !== undefined && data.skip !== false) return 'skipped';
  if (data.todo !== undefined && data.todo !== false) return failed ? 'xfailed' : 'xpassed';
  if (data.expectFailure !== undefined && data.expectFailure !== false) return failed ? 'failed' : 'xfailed';
  return failed ? 'failed' : 'passed';
}

function message(error, file) {
  if (!error) return '';
  const cause = error.cause && typeof error.cause === 'object' ? error.cause : error;
  const full = [cause.name, cause.message].filter(Boolean).join(': ');
  // An assertion says below its first line which values differ.
  const head = cause.name === 'AssertionError' ? joined(full.slice(0, MOST).split('\n')) : full;
  const place = placeIn(cause, file);
  return String(head || error.message || error).slice(0, MOST - place.length) + place;
}

// Where in its own file a test said no.
function placeIn(error, file) {
  for (const line of String(error.stack || '').split('\n')) {
    const hit = /(?:file:\/\/)?(\/[^()]+?):(\d+):\d+\)?$/.exec(line);
    if (hit && relative(hit[1]) === file) return `\n    at ${file}:${hit[2]}`;
  }
  return '';
}

function joined(lines) {
  return lines.map((line) => line.trim()).filter(Boolean).join(' ');
}

// The error that ended a file's process before its tests could run. The runner itself says only
// "test failed"; Node printed the error, its stack, and its own version as the last line.
function lastWords(text) {
  const lines = text.split('\n');
  let at = lines.length - 1;
  while (at >= 0 && !/^Node\.js v\d/.test(lines[at])) at -= 1;
  while (at >= 0 && !/^(?:Uncaught )?[\w$.]*(?:Error|Exception)(?: \[\w+\])?: /.test(lines[at])) at -= 1;
  if (at < 0) return '';
  const rest = lines.slice(at);
  const end = rest.findIndex((line) => /^\s+at |^Require stack:|^\s*$/.test(line));
  const words = joined(end < 0 ? rest : rest.slice(0, end));
  const here = `${process.cwd()}/`;
  return words.split(`file://${here}`).join('').split(here).join('').slice(0, MOST);
}

try {
  // Processes that tests start are none of ours; those of their files are, where each has its own.
  const look = process.execArgv.includes('--test') ? 'agentrunner_look.cjs' : '';
  const kept = (word) => look && word.startsWith('--require=') && word.endsWith(look);
  const ours = (word) => (word.includes(place) && !kept(word)) || /^--test-reporter-destination=(stdout|\/dev\/null)$/.test(word);
  const rest = (process.env.NODE_OPTIONS || '').split(' ').filter((word) => word && !ours(word)).join(' ');
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
} catch {
  // They are told then.
}

export default async function* report(source) {
  let fd = -1;
  const write = (event) => {
    try {
      if (fd >= 0) fs.writeSync(fd, JSON.stringify(event) + '\n');
    } catch {
      fd = -1;
    }
  };
  try {
    fd = opened();
  } catch {
    // It is then read off the text.
  }
  write({ k: 'start', tool: 'node', cwd: process.cwd() });
  const stack = [];
  const printed = new Map();
  let cut = false;
  for await (const { type, data } of source) {
    try {
      if (data.file && (type === 'test:stderr' || type === 'test:diagnostic')) {
        const line = String(data.message).replace(/\n?$/, '\n');
        printed.set(data.file, ((printed.get(data.file) || '') + line).slice(-MOST_PRINTED));
      } else if (type === 'test:start') {
        stack.length = data.nesting;
        stack[data.nesting] = data.name;
      } else if (type === 'test:pass' || type === 'test:fail') {
        const failed = type === 'test:fail';
        const error = data.details && data.details.error;
        const kind = error && error.failureType;
        const suite = data.details && data.details.type === 'suite';
        if (suite && (!failed || kind === 'subtestsFailed')) continue;
        const file = relative(data.file);
        const own = relative(path.resolve(data.name));
        const ofFile = data.nesting === 0 && (own === file || (!data.file && fs.existsSync(data.name)));
        if (ofFile && !failed) continue; // A file without tests, or one that its tests stand for.
        const parts = ofFile ? [own] : [file, ...stack.slice(0, data.nesting), data.name];
        const event = { k: 'test', n: parts.filter(Boolean).join(' > '), o: outcome(data, failed) };
        if (kind === 'hookFailed' || kind === 'cancelledByParent' || ofFile || suite) {
          if (event.o === 'failed') event.o = 'error';
        }
        if (ofFile) write({ k: 'lost', n: own });
        if (kind === 'cancelledByParent' || kind === 'parentAlreadyFinished') cut = true;
        event.f = ofFile ? own : file;
        if (data.line) event.l = data.line;
        if (failed) event.m = (ofFile && lastWords(printed.get(data.file || path.resolve(own)) || '')) || message(error, event.f);
        write(event);
      }
    } catch {
      // One event less.
    }
  }
  write({ k: 'end', cut });
}
