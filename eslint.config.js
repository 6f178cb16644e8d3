import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/** A property is written as one: a reader should not ask what a spread would add. */
const noSpreadLiterals = {
  selector: 'ObjectExpression > SpreadElement > ObjectExpression',
  message: 'write its properties as plain properties',
};

/** Whoever writes a text of megabytes would have the loop blocked for what nobody is shown. */
const noLateCut = ['slice', 'substring', 'substr'].flatMap((cut) =>
  ['MemberExpression > ', 'MemberExpression > CallExpression > MemberExpression > '].map((way) => ({
    selector: `CallExpression[callee.property.name='${cut}'] > ${way}CallExpression[callee.name=/^(withoutOwn|factsFromOutside)$/]`,
    message: 'cut before secrets are looked for: beginningFromOutside or beginningOfOwn',
  })),
);

/** While a process writes into a directory, its removal fails; in a hook that drops the tests behind it. */
const noHastyRemoval = {
  selector:
    "CallExpression:matches([callee.name='rmSync'], [callee.property.name='rmSync']):has(Property[key.name='recursive']):not(:has(Property[key.name='maxRetries']))",
  message: 'who wrote there may not have ended: use removeDirectory, or { maxRetries: 10, retryDelay: 100 }',
};

/** Rules beyond style: what a daemon dies of. Formatting is prettier's. */
export default tseslint.config(
  {
    ignores: [
      'dist/',
      'coverage/',
      'node_modules/',
      'var/',
      'test-results/',
      'test/fixtures/',
      '*.cjs',
      'eslint.config.js',
      '**/settings-validator.ts',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowAny: false, allowNullish: false, allowRegExp: false },
      ],
      // Contracts are asynchronous for the backends that need it; not every implementation awaits something.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      'no-restricted-globals': [
        'error',
        {
          globals: [
            { name: 'setInterval', message: 'use agents/loop.ts: it has health, back-off and an end' },
          ],
          checkGlobalObject: true,
        },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random', message: 'take it from the context: it is injected' },
        { object: 'Date', property: 'now', message: 'take the clock from the context: it is injected' },
      ],
      'no-restricted-syntax': [
        'error',
        noSpreadLiterals,
        ...noLateCut,
        {
          selector:
            ":matches(NewExpression[arguments.length=0], CallExpression):matches([callee.name='Date'], [callee.property.name='Date'])",
          message: 'take the clock from the context',
        },
        {
          selector:
            "MemberExpression[object.property.name='Date'][property.name='now'], MemberExpression[object.property.name='Math'][property.name='random']",
          message: 'take it from the context: it is injected',
        },
        {
          selector:
            "ImportDeclaration[source.value=/^(node:)?timers/] ImportSpecifier[imported.name='setInterval']",
          message: 'use agents/loop.ts: it has health, back-off and an end',
        },
      ],
      'no-console': 'error',
    },
  },
  {
    // Codes are added by declaration merging: the interface there has no members of its own.
    files: ['src/**/codes.ts'],
    rules: {
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
    },
  },
  {
    files: ['src/util/clock.ts', 'src/util/random.ts', 'test/**', 'bench/**', 'scripts/**'],
    rules: {
      'no-restricted-properties': 'off',
      'no-restricted-syntax': ['error', noSpreadLiterals],
      'no-console': 'off',
    },
  },
  {
    files: ['test/**'],
    rules: { 'no-restricted-syntax': ['error', noSpreadLiterals, noHastyRemoval] },
  },
  {
    // Nobody repeats them: a bound of time is missed by chance where the machine is busy. Speed is measured by bench/.
    files: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        noSpreadLiterals,
        noHastyRemoval,
        {
          selector: 'MemberExpression[property.name=/^(threadCpuUsage|cpuUsage|hrtime)$/]',
          message: 'a test is not timed: assert what bounds the work, and measure it in bench/',
        },
        {
          selector:
            "CallExpression[callee.property.name=/^(lessThan|below|lt|most|lte|within|closeTo)$/] CallExpression[callee.object.name='performance']",
          message: 'a test is not timed: assert what bounds the work, and measure it in bench/',
        },
      ],
    },
  },
  {
    // Files, programs and servers of others write texts of any length: none of them may block the loop.
    files: ['src/**'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'certain' }],
      'regexp/no-super-linear-move': ['error', { report: 'certain' }],
    },
  },
  {
    // A hint, no law: a file that holds one thing may be long, and one that is cut by the ruler is hard to read.
    files: ['src/**'],
    rules: { 'max-lines': ['warn', { max: 300 }] },
  },
  {
    // winston's types describe its transports as interfaces, so none of them counts as made by a constructor.
    files: ['src/daemon/logging.ts'],
    rules: { '@typescript-eslint/no-unsafe-class-instance-assignment': 'off' },
  },
  {
    files: ['test/**'],
    rules: {
      // chai's assertions are expressions.
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
