import type { PodSpec } from '../../../clients/interlink/wire.ts';

/** Parts of a Pod that its user sees the lack of, and why a job does not have them. */
const parts: readonly { readonly key: string; readonly why: string }[] = [
  { key: 'shareProcessNamespace', why: 'each container has its own processes' },
  { key: 'hostPID', why: 'each container has its own processes' },
  { key: 'hostIPC', why: 'each container has its own IPC' },
  { key: 'hostAliases', why: 'containers have /etc/hosts of the machine' },
  { key: 'dnsConfig', why: 'containers have the name servers of the machine' },
  { key: 'hostname', why: 'containers have the name of the machine' },
  { key: 'subdomain', why: 'containers have the name of the machine' },
  { key: 'ephemeralContainers', why: 'a job has the containers that it began with' },
];

const partsOfContainer: typeof parts = [
  { key: 'stdin', why: 'nothing writes into a job' },
  { key: 'tty', why: 'a job has no terminal' },
  { key: 'volumeDevices', why: 'a job has no devices of volumes' },
];

/** Whole sentences for the parts of a Pod that its job leaves out without a harm to the others. */
export function leftOutOf(spec: PodSpec): readonly string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  return [
    ...said(spec, parts, ''),
    ...containers.flatMap((one) => said(one, partsOfContainer, `container ${one.name}: `)),
    ...(spec.volumes ?? []).flatMap(({ name, emptyDir }) =>
      isSaid(emptyDir?.sizeLimit)
        ? [`volume ${name}: sizeLimit is left out: the disk of the job is the bound`]
        : [],
    ),
  ];
}

function said(values: object, table: typeof parts, whose: string): readonly string[] {
  const record: Readonly<Record<string, unknown>> = { ...values };
  return table.flatMap(({ key, why }) => (isSaid(record[key]) ? [`${whose}${key} is left out: ${why}`] : []));
}

function isSaid(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
