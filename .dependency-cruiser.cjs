/**
 * One direction of knowledge: cli -> http -> daemon -> agents -> (config -> limits, plugins/contracts, store) -> worker.
 * Each layer lists what it may import; everything else inside src/ is a violation.
 */
const layers = {
  worker: [],
  util: ['worker'],
  clients: ['util', 'worker'],
  'plugins/contracts': ['util', 'worker'],
  limits: ['plugins/contracts', 'util', 'worker'],
  config: ['limits', 'plugins/contracts', 'util', 'worker'],
  store: ['util', 'worker'],
  agents: ['limits', 'plugins/contracts', 'store', 'config', 'util', 'worker'],
  daemon: ['agents', 'limits', 'plugins', 'store', 'config', 'clients', 'util', 'worker'],
  http: ['daemon', 'agents', 'store', 'config', 'plugins/contracts', 'util', 'worker'],
  cli: ['http', 'daemon', 'agents', 'plugins/contracts', 'store', 'config', 'util', 'worker'],
};

const within = (layer) =>
  layer === 'plugins/contracts' ? '^src/plugins/contracts(/|\\.ts$)' : `^src/${layer}/`;

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([layer, may]) => ({
      name: `layer-${layer.replace('/', '-')}`,
      comment: `${layer} may import only: itself${may.map((name) => `, ${name}`).join('')}`,
      severity: 'error',
      from: { path: within(layer) },
      to: { path: '^src/', pathNot: [layer, ...may].map(within) },
    })),
    {
      name: 'plugin-is-its-own-folder',
      comment: 'A plugin imports its own folder, the contracts, clients/, worker/ and util/',
      severity: 'error',
      // Kinds with a folder per plugin have one level more.
      from: {
        path: '^src/plugins/((?:demand|messengers|credentials|throttlers)/[^/]+|[^/]+)/',
        pathNot: '^src/plugins/contracts/',
      },
      to: {
        path: '^src/',
        pathNot: ['^src/plugins/$1/', '^src/plugins/contracts(/|\\.ts$)', '^src/(clients|worker|util)/'],
      },
    },
    {
      name: 'registry-knows-plugins-only',
      comment: 'The registry is a list: it imports the plugins and their contract, nothing else',
      severity: 'error',
      from: { path: '^src/plugins/registry\\.ts$' },
      to: { path: '^src/', pathNot: ['^src/plugins/', '^src/(worker|util)/'] },
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
