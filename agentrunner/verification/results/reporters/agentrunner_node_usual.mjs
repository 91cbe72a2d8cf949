// The reporter that this Node would have chosen by itself.
import { spec, tap } from 'node:test/reporters';

const major = Number(process.versions.node.split('.')[0]);
export default process.stdout.isTTY || major >= 23 ? spec : tap;
