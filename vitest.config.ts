import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Tests that compile packages of other languages or a whole release. They take minutes. */
const artifacts = ['test/packages/{go,python,rust}.test.ts', 'test/release/release.test.ts']

/** Short runs of what searches for failures, which takes minutes too: `npm run soak` and others run longer ones. */
const searches = [
  'test/{soak,differential,cluster-simulation,ledger-simulation,simulate/property}/**/*.test.ts',
  'test/llm/linear-work.test.ts',
]

export default defineConfig({
  test: {
    // `npm test` runs the first project, `npm run test:artifacts` and `npm run test:searches` the others.
    projects: [
      {
        extends: true,
        test: {
          name: 'gateway',
          include: ['{src,events,test,examples,console}/**/*.test.ts'],
          exclude: [...artifacts, ...searches],
        },
      },
      { extends: true, test: { name: 'artifacts', include: artifacts } },
      { extends: true, test: { name: 'searches', include: searches } },
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
