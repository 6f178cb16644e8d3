/**
 * One direction of knowledge: cli -> http -> daemon -> agents -> (config -> limits, plugins/contracts, store) -> worker -> codes.
 * Each layer lists what it may import; everything else inside src/ is a violation.
 */
const layers = {
  codes: [],
  worker: ['codes'],
  util: ['worker', 'codes'],
  clients: ['util', 'worker', 'codes'],
  'plugins/contracts': ['util', 'worker', 'codes'],
  sources: ['plugins/contracts', 'clients', 'util', 'worker', 'codes'],
  limits: ['plugins/contracts', 'util', 'worker', 'codes'],
  config: ['limits', 'plugins/contracts', 'util', 'worker', 'codes'],
  store: ['util', 'worker', 'codes'],
  agents: ['limits', 'plugins/contracts', 'store', 'config', 'util', 'worker', 'codes'],
  daemon: ['agents', 'limits', 'plugins', 'store', 'config', 'clients', 'util', 'worker', 'codes'],
  http: ['daemon', 'agents', 'store', 'config', 'plugins/contracts', 'util', 'worker', 'codes'],
  cli: ['http', 'daemon', 'agents', 'plugins/contracts', 'store', 'config', 'util', 'worker', 'codes'],
};

/**
 * Beside whole layers: the catalogue of all codes takes up those of the sources, and `thresher pool unservable` explains the demand
 * of a pool without a daemon.
 */
const files = { daemon: ['^src/sources/[^/]+/codes\\.ts$', '^src/sources/htcondor-idle/explain\\.ts$'] };

const within = (layer) =>
  layer === 'plugins/contracts' ? '^src/plugins/contracts(/|\\.ts$)' : `^src/${layer}/`;

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([layer, may]) => ({
      name: `layer-${layer.replace('/', '-')}`,
      comment: `${layer} may import only: itself${may.map((name) => `, ${name}`).join('')}`,
      severity: 'error',
      from: { path: within(layer) },
      to: { path: '^src/', pathNot: [...[layer, ...may].map(within), ...(files[layer] ?? [])] },
    })),
    {
      name: 'config-has-no-ring',
      comment:
        'config/queues may know config/settings and config/harvester; these know neither it nor each other',
      severity: 'error',
      from: { path: '^src/config/(settings|harvester)/' },
      to: { path: '^src/config/', pathNot: '^src/config/$1/' },
    },
    {
      name: 'plugin-is-its-own-folder',
      comment: 'A plugin imports its own folder, the contracts, clients/, worker/, util/ and codes/',
      severity: 'error',
      // Kinds with a folder per plugin have one level more.
      from: {
        path: '^src/plugins/((?:messengers|credentials|throttlers)/[^/]+|[^/]+)/',
        pathNot: '^src/plugins/contracts/',
      },
      to: {
        path: '^src/',
        pathNot: [
          '^src/plugins/$1/',
          '^src/plugins/contracts(/|\\.ts$)',
          '^src/(clients|worker|util|codes)/',
        ],
      },
    },
    {
      name: 'source-is-its-own-folder',
      comment: 'A source imports no other source; files directly in sources/ are for all of them',
      severity: 'error',
      from: { path: '^src/sources/([^/]+)/' },
      to: { path: '^src/sources/[^/]+/', pathNot: '^src/sources/$1/' },
    },
    {
      name: 'registry-knows-plugins-only',
      comment: 'The registry is a list: it imports the plugins, the sources and their contract, nothing else',
      severity: 'error',
      from: { path: '^src/plugins/registry\\.ts$' },
      to: { path: '^src/', pathNot: ['^src/plugins/', '^src/sources/', '^src/(worker|util|codes)/'] },
    },
    {
      name: 'every-module-has-a-layer',
      comment: 'A module outside the layers would be held by no rule',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [...Object.keys(layers).map(within), '^src/plugins/[^/]+/', '^src/plugins/registry\\.ts$'],
      },
      to: {},
    },
    {
      name: 'no-undeclared-dependency',
      comment: 'A package that only another one brought may be gone tomorrow',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-test-code-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'no-dev-dependency-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], pathNot: '@types/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
    doNotFollow: { path: 'node_modules' },
  },
};
