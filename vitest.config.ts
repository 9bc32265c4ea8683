import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Tests that compile packages of other languages or a whole release: minutes each. */
const artifacts = ['test/packages/{go,python,rust}.test.ts', 'test/release/release.test.ts']

export default defineConfig({
  test: {
    // `npm test` runs the first project, `npm run test:artifacts` the second.
    projects: [
      {
        extends: true,
        test: {
          name: 'gateway',
          include: ['{src,events,test,examples,console}/**/*.test.ts'],
          exclude: artifacts,
        },
      },
      { extends: true, test: { name: 'artifacts', include: artifacts } },
    ],
    pool: 'forks',
    // Half of the time of most files is spent waiting for the processes that they have started.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 0,
    reporters: ['default'],
    globalSetup: ['test/support/absent-parts.ts'],
  },
})
