import { parseArgs } from 'node:util';
import { Failure } from './failure.ts';
import { buildBinaries, manifestPrograms, nodePrograms, programs } from './kubernetes/binaries.ts';
import { startControlPlane, stopControlPlane } from './kubernetes/control-plane.ts';
import { startNode } from './kubernetes/node.ts';
import { importPoolImage } from './kubernetes/pool-image.ts';
import { readStatus } from './kubernetes/status.ts';
import { importThresherImage, thresherBase } from './kubernetes/thresher-image.ts';

const usage = `usage: ./scripts/test-env kubernetes start|stop|status|build|image [--node] [--manifests] [--thresher DIST] [--for PID]

  start    start what does not run yet, and print where its kubeconfig is
  stop     end everything and leave nothing but the built programs; with --for PID only if nobody else needs it
  status   print as JSON what runs; exit code 3 if it does not
  build    build the programs that are missing, and start nothing
  image    make the image of an HTCondor pool, bring it to the real node, which must run, and print its name as JSON; make ready what
           takes long of thresher's own image

  --node       a real node (kubelet, kube-proxy, containerd) with a control plane of its own, beside the fake nodes; needs root
  --manifests  with build: kustomize and helm too, which make objects of templates
  --thresher   with image: that of thresher instead, with this directory as its built program
  --for PID    this process needs it: so that a stop for another one keeps it

Programs are taken from the directory KUBEBUILDER_ASSETS, then from the PATH, otherwise built with Go. Everything is kept
below THRESHER_TEST_ENV, by default ~/.cache/thresher.`;

const actions = ['start', 'stop', 'status', 'build', 'image'] as const;

interface Command {
  readonly action: (typeof actions)[number];
  readonly node: boolean;
  readonly manifests: boolean;
  readonly dist: string | undefined;
  readonly holder: number | undefined;
}

function readCommand(args: string[]): Command {
  const { values, positionals } = parsed(args);
  const [system, action, ...more] = positionals;
  if (system !== 'kubernetes') {
    throw new Failure(
      `there is no test environment ${system === undefined ? 'without a name' : `"${system}"`}: only kubernetes\n\n${usage}`,
    );
  }
  const found = actions.find((one) => one === action);
  if (found === undefined) {
    throw new Failure(`${action === undefined ? 'nothing' : `"${action}"`} is no action\n\n${usage}`);
  }
  if (more.length > 0) throw new Failure(`too many arguments: ${more.join(' ')}\n\n${usage}`);
  const holder = values.for === undefined ? undefined : Number(values.for);
  if (holder !== undefined && !(Number.isSafeInteger(holder) && holder > 0)) {
    throw new Failure(`--for is "${values.for ?? ''}": write the id of a process`);
  }
  return {
    action: found,
    node: values.node === true,
    manifests: values.manifests === true,
    dist: values.thresher,
    holder,
  };
}

function parsed(args: string[]) {
  try {
    const flag = { type: 'boolean' } as const;
    const text = { type: 'string' } as const;
    const options = { node: flag, manifests: flag, thresher: text, for: text } as const;
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

async function run(directory: string, { action, node, manifests, dist, holder }: Command): Promise<void> {
  switch (action) {
    case 'build':
      await buildBinaries(directory, [
        ...programs,
        ...(node ? nodePrograms : []),
        ...(manifests ? manifestPrograms : []),
      ]);
      return;
    case 'image':
      if (dist !== undefined) {
        console.log(JSON.stringify(await importThresherImage(directory, dist)));
        return;
      }
      console.log(JSON.stringify(await importPoolImage(directory)));
      await thresherBase(directory);
      return;
    case 'start': {
      const { kubeconfig } = await startControlPlane(directory, holder);
      console.log(kubeconfig);
      if (node) console.log((await startNode(directory)).kubeconfig);
      return;
    }
    case 'stop':
      await stopControlPlane(directory, holder);
      return;
    case 'status': {
      const status = await readStatus(directory);
      console.log(JSON.stringify(status, undefined, 2));
      if (!status.running || (node && status.node?.running !== true)) process.exitCode = 3;
      return;
    }
  }
}

const [directory = '', ...args] = process.argv.slice(2);
try {
  await run(directory, readCommand(args));
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.error(`test-env: ${error.message}`);
  process.exitCode = 1;
}
