const { filesInOrder } = require('./test/support/tiers.ts');

// scripts/test sets it: the tier that is asked for.
const { THRESHER_TEST_TIER: tier } = process.env;
// Mocha would add files that its command line names to all others.
const named = process.argv.some((argument) => argument.endsWith('.test.ts'));

module.exports = {
  ...(!named && { spec: filesInOrder(tier) }),
  timeout: 240_000,
  slow: 2000,
  'forbid-only': true,
  'forbid-pending': true,
  reporter: './test/support/reporter.ts',
  require: ['./test/support/temporary.ts'],
  parallel: true,
  jobs: 3,
};
