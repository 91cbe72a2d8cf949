// Runs at the start of every Node process of the project under test, from Node 12 on. Test tools get
// one more report from it; everything else is left alone. It must never fail or print.
'use strict';
const PLACE = require('path').dirname(__dirname);

function hide() {
  // Processes that a tool starts are none of ours.
  const kept = [];
  for (const word of (process.env.NODE_OPTIONS || '').split(' ')) {
    if (word.includes(PLACE) || word === '--test-reporter-destination=/dev/null') continue;
    kept.push(word);
  }
  const rest = kept.filter((word) => word !== '--test-reporter-destination=stdout').join(' ').trim();
  if (rest) process.env.NODE_OPTIONS = rest;
  else delete process.env.NODE_OPTIONS;
}

function packageOf(file) {
  // The name of the package that a program belongs to, and its folder.
  const fs = require('fs');
  const path = require('path');
  let folder = path.dirname(fs.realpathSync(file));
  for (let up = 0; up < 6; up += 1) {
    try {
      const named = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).name;
      if (named) return [named, folder];
    } catch {
      // Not here.
    }
    folder = path.dirname(folder);
  }
  return ['', ''];
}

function unique(tool, ending) {
  const random = require('crypto').randomBytes(6).toString('hex');
  const time = String(Date.now()).padStart(20, '0');
  return `${PLACE}/${tool}-${time}-${process.pid}-${random}${ending}`;
}

function given(...names) {
  return process.argv.slice(2).some((word) => names.some((name) => word === name || word.startsWith(`${name}=`)));
}

function add(...options) {
  // Behind a `--` they would be taken for paths.
  const end = process.argv.indexOf('--', 2);
  process.argv.splice(end < 0 ? process.argv.length : end, 0, ...options);
}

function restoreLater(before) {
  // Tests run in the tool's own process where it starts no others, and a program under test may
  // read its arguments. A tool that is loaded with `require` has read them by then.
  const ours = process.argv.slice();
  setImmediate(() => {
    const untouched = ours.length === process.argv.length && ours.every((word, at) => word === process.argv[at]);
    if (process.mainModule && untouched) process.argv.splice(0, process.argv.length, ...before);
  });
}

function configured(folder) {
  // The reporter that Mocha's configuration names.
  for (const name of ['options.cjs', 'options.js']) {
    try {
      return require(`${folder}/lib/cli/${name}`).loadOptions(process.argv.slice(2)).reporter || '';
    } catch {
      // Another version has it elsewhere.
    }
  }
  return '';
}

const TOOLS = {
  jest() {
    if (given('--json', '--outputFile', '--help', '--version', '--listTests', '--showConfig', '--init')) return;
    add('--json', `--outputFile=${unique('jest', '.json')}`);
  },
  vitest() {
    if (given('--help', '--version', 'list', 'init', 'bench', '--merge-reports', '--mergeReports')) return;
    if (!given('--reporter')) add('--reporter=default');
    add('--reporter=json', `--outputFile.json=${unique('vitest', '.json')}`);
  },
  mocha(folder) {
    if (given('--help', '--version', '-h', '-V', '--list-reporters', '--list-interfaces', '--dry-run')) return;
    const mine = `${PLACE}/node/agentrunner_mocha.cjs`;
    if (given(`--reporter=${mine}`)) return;
    const chosen = [];
    for (let at = 2; at < process.argv.length; at += 1) {
      const word = process.argv[at];
      if (word === '--') break;
      if (word === '--reporter' || word === '-R') {
        chosen.push(...process.argv.splice(at, 2).slice(1));
        at -= 1;
      } else if (/^(--reporter|-R)=/.test(word)) {
        chosen.push(process.argv.splice(at, 1)[0].replace(/^[^=]*=/, ''));
        at -= 1;
      }
    }
    const file = unique('mocha', '.jsonl');
    if (!chosen.length) chosen.push(configured(folder));
    const fs = require('fs');
    // Where no file can be loaded, this is all that is said.
    fs.writeFileSync(file, `${JSON.stringify({ k: 'start', tool: 'mocha', cwd: process.cwd() })}\n`);
    fs.chmodSync(file, 0o644);
    require('./agentrunner_look.cjs').arm('mocha');
    process.env.AGENTRUNNER_MOCHA = JSON.stringify({ chosen: chosen.pop(), file, folder });
    add(`--reporter=${mine}`);
  },
};
TOOLS['jest-cli'] = TOOLS.jest;
TOOLS['react-scripts'] = () => {
  if (process.argv.includes('test') || /[\\/]test\.js$/.test(process.argv[1])) TOOLS.jest();
};

try {
  let main = true;
  try {
    main = require('worker_threads').isMainThread;
  } catch {
    // Older than workers.
  }
  if (main && !process.env.NODE_TEST_CONTEXT) {
    if (process.execArgv.includes('--test')) hide();
    else if (process.argv[1]) {
      const [name, folder] = packageOf(process.argv[1]);
      if (Object.prototype.hasOwnProperty.call(TOOLS, name)) {
        // It starts the tool in a process of its own.
        const only = name === 'react-scripts' && !/[\\/]scripts[\\/]test\.js$/.test(process.argv[1]);
        if (!only) {
          const before = process.argv.slice();
          TOOLS[name](folder);
          restoreLater(before);
          hide();
        }
      }
    }
  }
} catch {
  // It is then read off the text.
}
