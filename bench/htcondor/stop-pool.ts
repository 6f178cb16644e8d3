/** `node stop-pool.ts DIRECTORY`: for a benchmark that is interrupted, which can wait for nothing but a process. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { stopPool } from '../../test/env/htcondor/pool.ts';

const [directory = ''] = process.argv.slice(2);
await stopPool(join(directory, 'pool'));
rmSync(directory, { recursive: true, force: true });
