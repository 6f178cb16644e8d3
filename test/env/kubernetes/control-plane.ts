import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../failure.ts';
import { type Access, accessFrom, agentFor, ask } from './api.ts';
import { programs, requireBinary } from './binaries.ts';
import { makeCertificates } from './certificates.ts';
import { commandOf, writeConfiguration } from './commands.ts';
import { stopNode } from './node.ts';
import { freePort } from './ports.ts';
import { isAlive, killAll, type Recorded, recordOf, startDetached } from './processes.ts';
import {
  type Component,
  type Holder,
  placesIn,
  type Ports,
  readState,
  type State,
  writeState,
} from './state.ts';

const stagesFile = join(import.meta.dirname, 'stages.yaml');
/** How long the control plane may take until it is ready, ms. A busy machine with two cores takes 30 s. */
const patience = 120_000;
const usualPorts: Ports = { etcd: 12379, etcdPeers: 12380, apiServer: 26443 };
/** Every environment has this node, large enough for every test. */
export const standingNode = 'fake-0';

/**
 * Starts what does not run. What was killed is started again on the same data and ports. A control plane whose holders have all ended, as
 * those of tests that were killed, is not used again: a run of tests begins with nothing of an earlier one.
 * @throws Failure with the end of the log of what did not start; then nothing is left running.
 */
export async function startControlPlane(directory: string, holder?: number): Promise<{ kubeconfig: string }> {
  if (holder !== undefined && recordOf(holder) === undefined) {
    throw new Failure(`--for is ${holder}: there is no such process`);
  }
  let before = readState(directory);
  if (holder !== undefined && before !== undefined && living(before.holders).length === 0) {
    await stopControlPlane(directory);
    before = undefined;
  }
  if (before !== undefined && Object.values(before.components).some(isAlive))
    return start(directory, before, holder);
  // Another program may take a port between our look and the start.
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(directory, await freshState(directory), holder);
    } catch (error) {
      const taken = error instanceof Failure && error.message.includes('address already in use');
      if (!taken || attempt === 3) throw error;
    }
  }
}

async function freshState(directory: string): Promise<State> {
  const { root, certificates } = placesIn(directory);
  // Its node may have ended with it, and left its data.
  await stopNode(directory);
  rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  mkdirSync(root, { recursive: true, mode: 0o700 });
  await makeCertificates(certificates);
  const ports = await freePorts();
  return { ports, components: {}, holders: [] };
}

async function start(directory: string, given: State, holder?: number): Promise<{ kubeconfig: string }> {
  const { root, certificates, kubeconfig, log } = placesIn(directory);
  const stages = createHash('sha256').update(readFileSync(stagesFile)).digest('hex');
  const kwok = given.components.kwok;
  // Another checkout, or an edited file: kwok reads its stages only when it starts.
  if (kwok !== undefined && given.stages !== stages) await killAll([kwok]);
  const alive = Object.entries(given.components).filter(([, recorded]) => isAlive(recorded));
  const components: State['components'] = Object.fromEntries(alive);
  let state: State = { ...given, stages, components, holders: withHolder(given.holders, holder) };
  writeState(directory, state);
  writeConfiguration(directory, state.ports);
  const access = accessFrom(certificates, state.ports.apiServer);
  try {
    for (const component of programs) {
      if (state.components[component] === undefined) {
        const command = commandOf(component, directory, state.ports, stagesFile);
        const path = requireBinary(directory, component);
        const started = await startDetached(path, command, log(component), root);
        state = { ...state, components: { ...state.components, [component]: started } };
        writeState(directory, state);
      }
      if (component === 'kube-apiserver') await waitUntilReady(directory, state, access);
    }
    await waitUntilUsable(directory, state, access);
  } catch (error) {
    await killAll(Object.values(state.components));
    throw error;
  }
  return { kubeconfig };
}

/** Ends everything, unless `holder` is given and others need it. Comes back when all is gone. */
export async function stopControlPlane(directory: string, holder?: number): Promise<void> {
  const state = readState(directory);
  if (holder !== undefined && state !== undefined) {
    const holders = living(state.holders).filter((one) => one === 'by hand' || one.pid !== holder);
    if (holders.length > 0) {
      writeState(directory, { ...state, holders });
      return;
    }
  }
  await stopNode(directory);
  if (state !== undefined) await killAll(Object.values(state.components));
  rmSync(placesIn(directory).root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

function living(holders: readonly Holder[]): Holder[] {
  return holders.filter((one) => one === 'by hand' || isAlive(one));
}

function withHolder(holders: readonly Holder[], pid: number | undefined): Holder[] {
  const added = pid === undefined ? 'by hand' : recordOf(pid);
  const others = living(holders).filter((one) => one === 'by hand' || one.pid !== pid);
  // One that has ended meanwhile needs nothing.
  return added === undefined || others.includes(added) ? others : [...others, added];
}

async function waitUntilReady(directory: string, state: State, access: Access): Promise<void> {
  const agent = agentFor(access);
  await waitFor(directory, state, 'the API server is ready', async () => {
    const { status } = await ask(access, agent, { method: 'GET', path: '/readyz', timeout: 2000 });
    return status === 200;
  });
  agent.destroy();
}

/** A Pod can be created, and there is a node for it. */
async function waitUntilUsable(directory: string, state: State, access: Access): Promise<void> {
  const agent = agentFor(access);
  const get = (path: string) => ask(access, agent, { method: 'GET', path, timeout: 5000 });
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: standingNode, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
  };
  const headers = { 'content-type': 'application/json' };
  await ask(access, agent, { method: 'POST', path: '/api/v1/nodes', headers, body: JSON.stringify(node) });
  await waitFor(directory, state, `the node ${standingNode} is ready`, async () => {
    const { text } = await get(`/api/v1/nodes/${standingNode}`);
    return /"type":"Ready","status":"True"/.test(text) && !text.includes('node.kubernetes.io/not-ready');
  });
  await waitFor(directory, state, 'the default service account exists', async () => {
    const { status } = await get('/api/v1/namespaces/default/serviceaccounts/default');
    return status === 200;
  });
  agent.destroy();
}

async function waitFor(
  directory: string,
  state: State,
  what: string,
  condition: () => Promise<boolean>,
): Promise<void> {
  const end = performance.now() + patience;
  while (!(await condition().catch(() => false))) {
    for (const [name, recorded] of Object.entries(state.components) as [Component, Recorded][]) {
      if (!isAlive(recorded)) throw new Failure(`${name} ended:\n${logEnd(directory, name)}`);
    }
    if (performance.now() > end) {
      const log = logEnd(directory, 'kube-apiserver');
      throw new Failure(
        `waited ${patience / 1000} s in vain until ${what}; the API server's log ends:\n${log}`,
      );
    }
    await sleep(50);
  }
}

function logEnd(directory: string, component: Component): string {
  const path = placesIn(directory).log(component);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return `${lines.slice(-15).join('\n')}\n(all of it is in ${path})`;
}

async function freePorts(): Promise<Ports> {
  const etcd = await freePort(usualPorts.etcd);
  const etcdPeers = await freePort(usualPorts.etcdPeers);
  return { etcd, etcdPeers, apiServer: await freePort(usualPorts.apiServer) };
}
