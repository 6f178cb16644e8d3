import type { Static } from 'typebox';
import Type from '../../util/type.ts';

const text = (description: string) => Type.String({ minLength: 1, description });
const seconds = (usual: number, description: string) =>
  Type.Number({ default: usual, exclusiveMinimum: 0, maximum: 86_400, description });

const directories = (description: string, usual: string[] = []) =>
  Type.Array(Type.String({ pattern: '^/' }), { default: usual, description });

/** Options in `sources.interlink` of the settings. */
export const InterlinkOptions = Type.Object({
  host: Type.String({
    default: '127.0.0.1',
    minLength: 1,
    description:
      'Address to listen at. interLink sends a plugin no token, so only this machine should reach it.',
  }),
  port: Type.Integer({
    default: 4000,
    minimum: 0,
    maximum: 65_535,
    description: 'Port to listen at; 0: any.',
  }),
  socket: Type.Optional(
    text('Unix socket to listen at, instead of host and port. Relative paths count from the settings.'),
  ),
  othersMayReachIt: Type.Boolean({
    default: false,
    description:
      'Allows a host that is not the loopback: everyone who reaches it can run jobs, unless a proxy or a firewall asks who they are.',
  }),
  queue: Type.Optional(
    text('Queue of the Pods. Default: the one queue with `"demand": "interlink"`, if there is one alone.'),
  ),
  dataRoot: Type.String({
    default: '.interlink',
    minLength: 1,
    description:
      'Directory of the files of Pods, for the user of the daemon alone. Relative paths count from the settings.',
  }),
  sharedDataRoot: Type.Boolean({
    default: false,
    description:
      'Whether jobs reach `dataRoot` at the same path, as on this machine or on a shared file system: they write their state and logs there while they run. Otherwise the template of the queue brings them back: `initialdir = ${payload.output}` of HTCondor.',
  }),
  createTimeout: seconds(90, 'Seconds that /create waits for the id of the job. interLink itself waits 120.'),
  lookInterval: seconds(
    1,
    'Seconds between looks at the reports that running jobs leave in `dataRoot`, and at what is left of deleted Pods.',
  ),
  silentHours: Type.Number({
    default: 24,
    exclusiveMinimum: 0,
    maximum: 87_600,
    description:
      'Hours after which thresher ends the job of a Pod that interLink asks for no more, though its pings come: the virtual kubelet asks for each living Pod every 5 s, and sends a /delete only once. A Pod whose /create got no answer is waited for 10 minutes at most.',
  }),
  keepEndedDays: Type.Number({
    default: 7,
    exclusiveMinimum: 0,
    maximum: 3650,
    description:
      'Days for which a Pod that has ended is kept if interLink never deletes it. Its status and logs are gone then.',
  }),
  reportUrl: Type.Optional(
    Type.String({
      pattern: '^https?://[^\\s]+[^/\\s]$',
      description:
        'Address to which running jobs send their state: `/sources/interlink/reports` of the HTTP server of thresher, as the machines of the jobs reach it. Default: they send none.',
    }),
  ),
  reportKeyFile: Type.Optional(
    text(
      'File with the key that signs the tokens of these jobs, 32 bytes or more. Default: thresher makes one in `dataRoot`.',
    ),
  ),
  htcondor: Type.Boolean({
    default: true,
    description:
      'Whether the queue runs on HTCondor: jobs get submit commands such as `request_cpus`, which other backends refuse.',
  }),
  capacity: Type.Union([Type.Literal('none'), Type.Literal('htcondor')], {
    default: 'none',
    description: 'Source of the resources that the ping tells the node: `htcondor` asks `condor_status`.',
  }),
  capacityInterval: seconds(60, 'Seconds between these questions.'),
  capacityScript: Type.Optional(
    text(
      'Command for `/bin/sh` that prints the resources instead, in JSON: `{"resources": {"cpu": "128", "memory": "512Gi", "pods": "1000", "accelerators": [{"resourceType": "nvidia.com/gpu", "available": "8"}]}}`, each part if it is known. It runs in the directory of the settings, for 60 s at most.',
    ),
  ),
  condorPool: Type.Optional(
    text('Collector to ask, `HOST[:PORT]`. Default: that of the configuration of HTCondor.'),
  ),
  taints: Type.Optional(
    Type.Array(
      Type.Object({
        key: Type.String({ minLength: 1 }),
        value: Type.Optional(Type.String()),
        effect: Type.String({ pattern: '^(NoSchedule|PreferNoSchedule|NoExecute)$' }),
      }),
      {
        description:
          'Taints of the node, in the place of all but its own; an empty list removes them. Default: those of `capacityScript`, else the node keeps its taints.',
      },
    ),
  ),
  runtime: Type.String({
    default: 'apptainer',
    minLength: 1,
    description:
      'Program that runs images on the machines of the jobs: `apptainer`, `singularity`, or the path of either.',
  }),
  runtimeOptions: Type.Array(Type.String(), {
    default: [],
    description:
      'Options of this program for every container. With one that gives capabilities, such as `--fakeroot`, no mount is for reading only ([interlink.md](interlink.md#root-in-an-image)).',
  }),
  hostPaths: directories(
    'Directories of the machines of the jobs that Pods may mount by `hostPath`, with all below them.',
  ),
  imagePaths: directories('Directories of the machines of the jobs that have images.', ['/cvmfs']),
  imageCache: Type.Optional(
    Type.String({
      pattern: '^/',
      description: 'Directory that the machines of the jobs share, for images that were pulled.',
    }),
  ),
  imagePrefix: Type.String({
    default: 'docker://',
    description:
      'Stands before images that are neither a path nor have a scheme, unless the annotation `slurm-job.vk.io/image-root` says otherwise.',
  }),
  probes: Type.Boolean({ default: true, description: 'Whether jobs do the probes of their Pods.' }),
  dummySeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 86_400,
      description:
        'For tests: each job sleeps so long, and runs no container. Default: it runs its containers.',
    }),
  ),
  readOnlyImages: Type.Boolean({
    default: false,
    description:
      'Whether a container can write to its image only where its Pod says `readOnlyRootFilesystem: false`. By default it can, as in Kubernetes, unless the Pod says `true`: apptainer keeps what it writes in memory, 64 MiB at most if its configuration says no other `sessiondir max size`.',
  }),
  allowHost: Type.Boolean({
    default: false,
    description: 'Whether the image `host` runs a command on the machine itself.',
  }),
  allowPreExec: Type.Boolean({
    default: false,
    description:
      'Whether annotations of Pods may name commands that run on the machine before the containers, as tunnels and meshes need it.',
  }),
  allowJobScript: Type.Boolean({
    default: false,
    description: "Whether a script of interLink's script builder may take the place of the containers.",
  }),
  submitCommands: Type.Array(Type.String({ minLength: 1 }), {
    default: [
      'request_*',
      'require_gpus',
      'gpus_*',
      'requirements',
      'rank',
      '+MaxRuntime',
      '+MaxWallTimeMins',
      '+JobFlavour',
    ],
    description:
      'Commands of a submit description that Pods may give in the annotation `slurm-job.vk.io/flags`; `*` at the end of a name stands for any end, and `*` alone for all that thresher passes on. Priority and accounting group are not among the default ones, since all Pods run as one user.',
  }),
  logBytes: Type.Integer({
    default: 256 * 1024 * 1024,
    minimum: 0,
    description:
      'Bytes of the log of one container, at most. The job keeps the end of a longer one, half of this. 0: no bound.',
  }),
  commandPrefix: Type.String({
    default: '',
    description: 'Shell text that runs on the machine of each job before its containers.',
  }),
  exportPodData: Type.Boolean({
    default: true,
    description: 'Whether jobs get the ConfigMaps and Secrets of their Pods.',
  }),
});
export type InterlinkOptions = Static<typeof InterlinkOptions>;
